package sandbox

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestReportExampleOfTheFormatParses(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/formats/report-descriptor.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^0 [0-9a-f]{32} \{.*\}$`).Find(doc)
	if line == nil {
		t.Fatal("the format has no example frame")
	}
	key, err := hex.DecodeString(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := newReader(key).parse(line); !ok {
		t.Errorf("parse(%s) refused under the key of the format", line)
	}
}
