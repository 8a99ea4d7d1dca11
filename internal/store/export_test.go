package store

// QueryNames lists the statements of sql/.
func QueryNames() []string { return queryNames() }

// QueryText is the text of a statement.
func QueryText(name string) string { return queries()[name] }
