// Package snapshot seals a commit or a dirty working copy into a git tree in our
// own object store. There it keeps, compares and merges trees; from there it
// checks them out into the cache, and delivers one as a commit to a branch.
//
// Nothing of the user's index, refs, hooks, filters or configuration is used or
// touched: git is run with a git directory of our own and an allow-listed
// environment. Two things are written to a user's repository: an anchor, and a
// delivered commit with its branch; a reference moves only from where the caller
// saw it. A checkout is a slot below the cache directory, held by one process at
// a time and updated in place, so that the path of a repository's sources stays
// the same from tree to tree and build caches keep working.
//
// Below the state directory, snapshot/<repository id>/ holds store.git (objects
// that are only ours, refs/proveto/snap/<tree> for every sealed tree, and
// refs/proveto/<run>/<n> for the snapshots of runs, commits whose history git
// takes to begin with them), origin.json (where the user's objects are, which are
// read in place), private indexes and locks. Below the cache directory,
// checkouts/<repository id>/<n>/ holds src, its index, a lock and the file tree,
// which is present only while src was seen to be exactly that tree. Locks are the
// kernel's: a killed process holds none.
//
// A sealed tree needs the user's object store for what was committed before; it
// does not outlive a repository that is deleted or whose history is rewritten
// and collected.
package snapshot
