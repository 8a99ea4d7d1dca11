package ledger

// Encode is the bytes that are hashed for an entry.
func Encode(e Entry) []byte {
	return encode(e.Seq, e.Time.Format(timeFormat), string(e.Kind), string(e.Body))
}
