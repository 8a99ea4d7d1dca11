package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowNamesEveryReason(t *testing.T) {
	t.Parallel()
	r := row{name: "m", cpu: 12.34, rss: 128 << 10}
	in := `{"data":{"first_proof_ms":2500,"counts":{"proven":3,"refuted":1,"total":9},"unmeasured":[
	 {"reason":"no_coverage","count":1},{"reason":"flaky","count":2},{"reason":"no_coverage","count":2}]}}`
	if err := json.Unmarshal([]byte(in), &r.answer); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	show(&got, []row{r})
	want := `| module | symbols | proven | refuted | not measured | first proof s | CPU s | peak MiB |
|---|---|---|---|---|---|---|---|
| m | 9 | 3 | 1 | 3 no_coverage, 2 flaky | 2.5 | 12.3 | 128 |
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
