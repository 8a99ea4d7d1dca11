// Package snapshot seals a commit or a dirty working copy into a git tree in our
// own object store, and checks trees out into the cache.
//
// Nothing of the user's index, refs, hooks, filters or configuration is used or
// touched: git is run with a git directory of our own and an allow-listed
// environment. A checkout is a slot below the cache directory, held by one
// process at a time and updated in place, so that the path of a repository's
// sources stays the same from tree to tree and build caches keep working.
package snapshot
