from sqlmesh import signal


@signal()
def line_is_closed(batch, hall):
    return [interval for interval in batch if interval is not None and hall]
