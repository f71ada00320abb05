from sqlmesh import signal


@signal()
def loaded(batch, hours):
    return True if int(str(hours)) >= 0 else False
