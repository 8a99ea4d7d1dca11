package store

// QueryNames lists the statements of sql/.
func QueryNames() []string { return queryNames() }

// QueryText is the text of a statement.
func QueryText(name string) string { return queries()[name] }

// OpenConnections is how many connections this handle has opened and not closed.
func (db *DB) OpenConnections() int { return db.pool.Stats().OpenConnections }
