"""Which versions of SQLMesh this release can work with, for both processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

# `packaging` is imported in functions: a start that does nothing does not wait for it.

Release = tuple[int, ...]

OLDEST: Release = (0, 227, 1)
# The first version that was not tried.
BEYOND: Release = (0, 237)
SQLMESH_VERSIONS_TEXT = "0.227.1 to 0.236.x"

WAY_OUT = (
    f"Pin one of {SQLMESH_VERSIONS_TEXT} in the input `requirements`: the one that prod is built "
    "with, if it is among them. Of an older one, upgrade prod first, which ends with "
    "`sqlmesh migrate`. For a newer one, take a newer release of this action."
)

# More patches than any minor version of SQLMesh ever had.
_PATCHES = 100


def parse_release(version: str) -> Release:
    """Returns the numbers of a version; a release candidate has those of its release.

    Empty if the text is no version (PEP 440).
    """
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version).release
    except InvalidVersion:
        return ()


def is_supported(version: str) -> bool:
    """Whether this release works with that version."""
    return OLDEST <= parse_release(version) < BEYOND


def find_excluding_requirement(requirement: str) -> str | None:
    """Returns what a line of a requirements file asks for, if no supported version fits it.

    Returns None if one does. A line that allows a version that does not exist counts as allowing
    it. A line that is no requirement (PEP 508) excludes nothing: pip refuses it.
    """
    bounds = _read_bounds("sqlmesh", requirement)
    if bounds is None:
        return None
    minors = range(OLDEST[1], BEYOND[1])
    releases = [f"0.{minor}.{patch}" for minor in minors for patch in range(_PATCHES)]
    named = [bound.version for bound in bounds]
    supported = filter(is_supported, [*releases, *named])
    return None if any(bounds.filter(supported, prereleases=True)) else f"sqlmesh{bounds}"


def find_exact_version(bounds: str) -> str | None:
    """Returns the one version that bounds such as `==3.5.1` allow; None if there is none such."""
    from packaging.specifiers import SpecifierSet

    try:
        (bound,) = SpecifierSet(bounds)
    except ValueError:
        return None
    is_exact = bound.operator in ("==", "===") and not bound.version.endswith(".*")
    return bound.version.removeprefix("v") if is_exact else None


def _read_bounds(package: str, requirement: str) -> SpecifierSet | None:
    """Returns which versions a line of a requirements file allows; None if it says nothing."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(re.split(r"\s(?:--|#)", requirement, maxsplit=1)[0])
    except InvalidRequirement:
        return None
    return parsed.specifier if parsed.name.lower() == package and parsed.url is None else None


def describe_unsupported(what: str) -> str:
    """Says in a sentence why a version is refused.

    Args:
        what: What asks for this version, or has it.
    """
    return f"{what}, and this release works with SQLMesh {SQLMESH_VERSIONS_TEXT}."


# Which versions of PySpark this release was tried with, and which of their sources it knows.


TRIED = ("3.4", "3.5", "4.0", "4.1", "4.2", "4.3")
PYSPARK_VERSIONS_TEXT = "3.4, 3.5, 4.0, 4.1, 4.2 and 4.3"
# What to do if the action's image for reviews, which has no Spark, should do more.
WITH_SPARK = (
    "In that workflow name the action without `/review` in `uses:`; its image has Spark and Java."
)

# PySpark is only published as source, which runs code when it is installed. These archives are
# Apache Spark's own releases, with nothing to compile; any index or mirror may serve them.
SOURCES = {
    "3.4.0": "167a23e11854adb37f8602de6fcc3a4f96fd5f1e323b9bb83325f38408c5aafd",
    "3.4.1": "72cd66ab8cf61a75854e5a753f75bea35ee075c3a96f9de4e2a66d02ec7fc652",
    "3.4.2": "088db1b8ff33a748b802f1710ff6f6dcef0e0f2cca7d69bbbe55b187a0d55c3f",
    "3.4.3": "8d7025fa274830cb6c3bd592228be3d9345cb3b8b1e324018c2aa6e75f48a208",
    "3.4.4": "b831a99c1aeb058bc4a2498665de10006b899b2438ba15470cc88f577755ebf8",
    "3.5.0": "d41a9b76bd2aca370a6100d075c029e22ba44c5940927877e9435a3a9c566558",
    "3.5.1": "dd6569e547365eadc4f887bf57f153e4d582a68c4b490de475d55b9981664910",
    "3.5.2": "bbb36eba09fa24e86e0923d7e7a986041b90c714e11c6aa976f9791fe9edde5e",
    "3.5.3": "68b7cc0c0c570a7d8644f49f40d2da8709b01d30c9126cc8cf93b4f84f3d9747",
    "3.5.4": "1c2926d63020902163f58222466adf6f8016f6c43c1f319b8e7a71dbaa05fc51",
    "3.5.5": "6effc9ce98edf231f4d683fd14f7270629bf8458c628d6a2620ded4bb34f3cb9",
    "3.5.6": "f8b1c4360e41ab398c64904fae08740503bcb6bd389457d659fa6d9f2952cc48",
    "3.5.7": "80e36514e0c5c126d35a26adf4f405cd4a69de96a8ea8a3c1e9a65fce2fb4eaa",
    "3.5.8": "54cca0767b21b40e3953ad1d30f8601c53abf9cbda763653289cdcfcac52313c",
    "3.5.9": "ea27adc39ddac9413b8951e45aa748cbed6c785971b81386efc41938f6243d93",
    "4.0.0": "38db1b4f6095a080d7605e578d775528990e66dc326311d93e94a71cfc24e5a5",
    "4.0.1": "9d1f22d994f60369228397e3479003ffe2dd736ba79165003246ff7bd48e2c73",
    "4.0.2": "938b4a1883383374d331ebfcb5d92debfa1891cf3d7a6d730520a1a2d23f1a90",
    "4.0.3": "9ed23e8601d73afae857eb5f9e11050b59cd11bbe50777564fcc4923cb117c1c",
    "4.0.4": "7e119366364d48e3cda1b1efd1ebc6cd672949500667c9cabbeef858daba700f",
    "4.0.5": "a0d44b0e7faf0458ad83b7aa664e7ed8b96beed8a55d66ce3b0dfac2309dfca6",
    "4.1.0": "09c714ada88dfac3e1213c066617c6f473c1e22fbe279855028f77e12434147d",
    "4.1.1": "77f78984aa84fbe865c717dd37b49913b4e5c97d76ef6824f932f1aefa6621ec",
    "4.1.2": "fa5d6159f700d0990a07f4f62df1b7449401dccee9cd7d5d6df8957530841602",
    "4.1.3": "b600238e771e45618a58beaf9d63cfd9aa06f61ce193244cedf890a04a4409f7",
    "4.1.4": "bcbd5e18690cf79d438e97210ad06fb8d451a251bb77becc2b0418868d2acd73",
    "4.2.0": "5ad689d53570ee1674193fd4f9bda065f0db3be9363a27d2a3406cc457b70b61",
    "4.2.1": "d79b7c8ee41e66a9202fe6f600ca90b931ca571ae9dbdf31c58d2672e5102da0",
    "4.3.0": "e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6",
}

*_, NEWEST = SOURCES


def was_tried(version: str) -> bool:
    """Whether this release was tried with that version's release line."""
    return ".".join(map(str, parse_release(version)[:2])) in TRIED


def read_pinned_version(requirement: str) -> str | None:
    """Returns the one version that a line of a requirements file pins PySpark to, else None."""
    return find_exact_version(str(_read_bounds("pyspark", requirement) or ""))


def find_source_requirement(version: str) -> str | None:
    """Returns a requirement for that version's source by its hash; None if it is not known."""
    known = SOURCES.get(version)
    return None if known is None else f"pyspark=={version} --hash=sha256:{known}"
