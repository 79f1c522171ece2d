# What scripts/test and scripts/demo share: an environment with the package installed. Sourced, not run.
#
# Leaves the current directory at the checkout and sets PYTHON to the environment's interpreter. Uses the active virtual
# environment, or makes .venv with the first Python that is new enough. Installs only when pyproject.toml or the way of
# installing changed since the last time, so that a second run starts at once.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

_is_new_enough() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

# python_of ENVIRONMENT: its interpreter, which Windows has in another folder.
python_of() {
    if [ -d "$1/Scripts" ]; then echo "$1/Scripts/python"; else echo "$1/bin/python"; fi
}

_has_pip() {  # an environment whose making was interrupted has none
    "$1" -m pip --version >/dev/null 2>&1
}

_find_python() {
    local name
    for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if [ -n "$name" ] && _is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    echo "No Python 3.10 or newer was found with venv and pip (tried python3, python3.14 … python3.10); install one, or set PYTHON." >&2
    return 1
}

# The distribution was once named detmap, as another project's is on the package index: both would be kept.
_uninstall_former() {
    rm -rf detmap.egg-info
    if "$PYTHON" -c 'from detmap import installation as i; raise SystemExit(not i.has_former())'; then
        "$PYTHON" -m pip uninstall --quiet --disable-pip-version-check --yes detmap >&2
    fi
}

# Python writes the bytecode of what it imports: that of all modules takes pip 3 s more, most of them numba's.
_without_bytecode() {
    [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] || echo --no-compile
}

# setup_environment [EXTRA]: install the package with numba, which compiles the kernels of a checkout, and with an extra.
setup_environment() {
    local environment base extras wanted stamp
    extras="jit${1:+,$1}"
    environment="${VIRTUAL_ENV:-}"
    if [ -z "$environment" ]; then
        environment="$PWD/.venv"
        if ! _is_new_enough "$(python_of "$environment")" || ! _has_pip "$(python_of "$environment")"; then
            base="$(_find_python)"
            echo "Making .venv with $("$base" --version)" >&2
            "$base" -m venv --clear "$environment"
        fi
    elif ! _has_pip "$(python_of "$environment")"; then
        echo "The active environment $environment has no Python with pip; deactivate it, or make it anew." >&2
        return 1
    fi
    PYTHON="$(python_of "$environment")"
    wanted="$PWD $extras $(git hash-object pyproject.toml)"
    stamp="$environment/.detmap-installed${1:+-$1}"
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        echo "Installing detmap-eval[$extras]; this happens once" >&2
        _uninstall_former
        "$PYTHON" -c 'import sys; from detmap import installation as i; sys.stderr.writelines(f"{one}\n" for one in [i.find_foreign()] if one)'
        "$PYTHON" -m pip install --quiet --disable-pip-version-check $(_without_bytecode) --editable ".[$extras]" >&2
        echo "$wanted" >"$stamp"
        echo "$PWD jit ${wanted##* }" >"$environment/.detmap-installed" # with an extra it is one without, too
    fi
}
