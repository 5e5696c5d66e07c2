#!/bin/sh
# Did a run change the work tree? Used by `make check`.
#
#   tree.sh save      remember the state
#   tree.sh compare   fail if it differs
#
# Changes that were there before are nobody's fault. In a clean clone (CI) new files count as well: one
# that is not ignored would end up in somebody's commit. Outside of a git checkout this does nothing.
set -eu
cd "$(dirname -- "$0")/.."
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 0

saved=.cache/tree
state() {
	git status --porcelain --untracked-files=all >"$saved.status$1"
	git diff --no-ext-diff >"$saved.diff$1" # tracked files against the index
}

mkdir -p .cache
case ${1-} in
save)
	state ''
	;;
compare)
	[ -f "$saved.diff" ] || { echo 'tree.sh: error: compare without save' >&2; exit 1; }
	state .now
	if ! cmp -s "$saved.diff" "$saved.diff.now"; then
		echo 'check: this run changed tracked files:' >&2
		diff "$saved.diff" "$saved.diff.now" >&2 || true
		exit 1
	fi
	if [ ! -s "$saved.status" ] && [ -s "$saved.status.now" ]; then
		echo 'check: this run left files that git does not ignore:' >&2
		cat "$saved.status.now" >&2
		exit 1
	fi
	;;
*)
	echo 'tree.sh: error: save or compare' >&2
	exit 2
	;;
esac
