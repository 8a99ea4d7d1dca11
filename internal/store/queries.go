package store

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed sql
var sqlFiles embed.FS

// queries are the named statements of sql/*.sql. A name that is not there is a
// broken invariant of ours.
var queries = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	files, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		text, err := sqlFiles.ReadFile(f)
		if err != nil {
			panic(err)
		}
		for _, part := range strings.Split(string(text), "-- name: ")[1:] {
			name, body, _ := strings.Cut(part, "\n")
			if _, twice := out[name]; twice {
				panic(fmt.Sprintf("statement %s is there twice", name))
			}
			body, _, _ = strings.Cut(body, ";") // what follows is the comment of the next one
			out[name] = strings.TrimSpace(body)
		}
	}
	return out
})

// queryNames lists the statements, sorted. For tests.
func queryNames() []string { return slices.Sorted(maps.Keys(queries())) }

type migration struct {
	version int
	name    string
	text    string
}

// migrations are the numbered files of sql/migrations, in order.
func migrations() ([]migration, error) {
	files, err := fs.Glob(sqlFiles, "sql/migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []migration
	for i, f := range files {
		text, err := sqlFiles.ReadFile(f)
		if err != nil {
			return nil, err
		}
		m := migration{version: i + 1, name: f, text: string(text)}
		if !strings.HasPrefix(f, fmt.Sprintf("sql/migrations/%04d_", m.version)) {
			return nil, fmt.Errorf("migration %s is not number %d", f, m.version)
		}
		out = append(out, m)
	}
	return out, nil
}

// SchemaVersion is the newest schema that this version knows.
const SchemaVersion = 2
