package ledger

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
)

// Kind is the kind of an entry.
type Kind string

// The kinds of this package. Other jobs add theirs with [NewDraft].
const (
	KindGenesis     Kind = "genesis"
	KindSnapshot    Kind = "snapshot"
	KindRun         Kind = "run"
	KindCertificate Kind = "certificate"
	KindMeasurement Kind = "measurement"
	KindWaiver      Kind = "waiver"
	KindStart       Kind = "start"
	KindRefusal     Kind = "refusal"
)

// Entry is one fact. Body is canonical JSON; do not change it.
type Entry struct {
	Seq  int64
	Time time.Time // UTC; the order of entries is that of Seq
	Kind Kind
	Body json.RawMessage
	leaf string // hash of the entry, where it was made already; see [Entry.LeafHash]
}

const timeFormat = time.RFC3339Nano

// encode appends the canonical JSON of the entry: what is hashed. The body is
// canonical already and the other values need no escapes, so that putting them
// together in the order of the keys is the canonical form.
func encode(b []byte, seq int64, time, kind, body string) []byte {
	b = append(b, `{"body":`...)
	b = append(b, body...)
	b = append(b, `,"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, `,"time":"`...)
	b = append(b, time...)
	return append(b, `"}`...)
}

// rooms are where entries are put together to be hashed: those of a long run would
// be most of what a command allocates.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

func leafOf(r store.EntryRow) tlog.Hash {
	room, _ := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	*room = encode((*room)[:0], r.Seq, r.Time, r.Kind, r.Body)
	return tlog.RecordHash(*room)
}

// entryOf reads a row and checks it against its own leaf hash.
func entryOf(r store.EntryRow) (Entry, error) {
	if leafOf(r).String() != r.LeafHash {
		return Entry{}, broken(r.Seq, "its bytes do not have its hash")
	}
	t, err := time.Parse(timeFormat, r.Time)
	if err != nil {
		return Entry{}, broken(r.Seq, "its time does not parse")
	}
	return Entry{Seq: r.Seq, Time: t, Kind: Kind(r.Kind), Body: json.RawMessage(r.Body), leaf: r.LeafHash}, nil
}

func broken(seq int64, why string) error {
	return fault.New(fault.Tampered, CodeBroken, "ledger entry %d: %s", seq, why).Hint("proveto ledger verify")
}

// validKind keeps kinds to what needs no escape in JSON.
func validKind(k Kind) bool {
	for _, c := range k {
		if (c < 'a' || c > 'z') && c != '_' && c != '.' {
			return false
		}
	}
	return k != "" && len(k) <= 64
}
