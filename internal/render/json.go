package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/proveto/proveto/internal/view"
)

// JSON writes the envelope: one document, the fields in the order of the types,
// lists never null, hidden characters written as JSON escapes.
func JSON(w io.Writer, a view.Answer) error {
	if a.Warnings == nil {
		a.Warnings = []view.Warning{}
	}
	if a.Hints == nil {
		a.Hints = []string{}
	}
	if a.Next == nil {
		a.Next = []view.Next{}
	}
	body, err := encode(a, "  ")
	if err != nil {
		return fmt.Errorf("encode the answer %s: %w", a.Schema, err)
	}
	_, err = w.Write(append(body, '\n'))
	return err
}

// JSONLine writes one value in one line, as [JSON] writes the envelope.
func JSONLine(w io.Writer, v any) error {
	body, err := encode(v, "")
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	_, err = w.Write(append(body, '\n'))
	return err
}

// encode is v as JSON that is safe to show in a terminal and inside a script
// element: hidden characters and < > & are escaped. An indent of "" is compact.
func encode(v any, indent string) ([]byte, error) {
	body, err := json.Marshal(noNulls(v))
	if err != nil {
		return nil, err
	}
	if indent != "" {
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", indent); err != nil {
			return nil, err
		}
		body = b.Bytes()
	}
	return escapeHidden(body), nil
}

// escapeHidden writes hidden characters, which in valid JSON stand inside
// strings only, as \uXXXX. The line feeds of the layout stay.
func escapeHidden(body []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(body) {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// took is a duration for people: 840 ms, 12.4 s, 3 min 05 s.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
