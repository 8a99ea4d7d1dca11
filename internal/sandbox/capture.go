package sandbox

import (
	"io"

	"github.com/proveto/proveto/internal/evidence"
)

// capture keeps the beginning of a stream and counts the rest.
type capture struct {
	limit int64 // bytes kept; 0 keeps all
	buf   []byte
	total int64
}

// read takes everything up to the end of r, so that the writer never blocks.
// bomb is called once when the stream is far over its limit. An error of r ends
// the stream where it is.
func (c *capture) read(r io.Reader, bomb func()) {
	part := make([]byte, 32<<10)
	for {
		n, err := r.Read(part)
		before := c.total
		c.total += int64(n)
		keep := int64(n)
		if c.limit > 0 {
			keep = min(keep, c.limit-int64(len(c.buf)))
		}
		c.buf = append(c.buf, part[:keep]...)
		if over := bombFactor * c.limit; c.limit > 0 && before <= over && c.total > over {
			bomb()
		}
		if err != nil {
			return
		}
	}
}

// output is the stream as a run records it.
func (c *capture) output() evidence.Output {
	o := evidence.Output{Bytes: c.total, Truncated: c.total > int64(len(c.buf))}
	if len(c.buf) > 0 {
		o.Digest = evidence.DigestOf(c.buf)
	}
	return o
}
