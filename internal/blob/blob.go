// Package blob keeps bytes under their digest: the events and the output of
// runs, reports, results.
//
// A blob with digest sha256:abcdef… is the file ab/cdef… below the directory of
// the store; unfinished files lie below tmp/. Files are never changed: a blob is
// written whole, made durable, and only then given its name, so a name that
// exists has all its bytes even after a power cut. Reading hashes again; bytes
// that do not have the digest they are filed under are never returned.
//
// All access goes through [os.Root]: neither a digest nor a symbolic link can
// lead out of the directory. The package knows nothing of what a blob means;
// what is cited, and by whom, is known to package ledger.
package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// The codes of this package.
const (
	CodeBad     fault.Code = "blob_bad"         // the bytes do not have the digest they are filed under
	CodeMissing fault.Code = "evidence_missing" // no such blob
	CodeNoSpace fault.Code = "no_space"
	CodeIO      fault.Code = "io"
)

const tempDir = "tmp"

// parallelWrites bounds the files that PutAll makes durable at once: the file
// system joins their flushes, which is most of the cost of a small blob.
const parallelWrites = 8

// Store is a directory of blobs. It may be used by any number of goroutines and
// processes at once.
type Store struct {
	root *os.Root
	// Whoever writes holds tmp/ shared, so that nobody takes an unfinished file
	// for one that a killed process left.
	mu      sync.Mutex
	writing *os.File
}

// Open opens the store in dir and makes the directory (mode 0700) if it is not
// there. A dir that is a symbolic link is refused. What killed processes left
// unfinished is removed, unless another process writes at this moment.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, ioFault(err, "make blob directory %s", dir)
	}
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
		return nil, fault.Wrap(err, fault.Refused, CodeIO, "blob directory %s is not a directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, ioFault(err, "open blob directory %s", dir)
	}
	if err := root.Mkdir(tempDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(ioFault(err, "make %s", filepath.Join(dir, tempDir)), root.Close())
	}
	s := &Store{root: root}
	if err := s.tidy(); err != nil {
		return nil, errors.Join(ioFault(err, "tidy %s", filepath.Join(dir, tempDir)), root.Close())
	}
	return s, nil
}

// Close releases the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing == nil {
		return s.root.Close()
	}
	writing := s.writing
	s.writing = nil
	return errors.Join(writing.Close(), s.root.Close())
}

// tidy removes unfinished files when nobody writes. A directory that cannot be
// written is left as it is: reading needs nothing of it.
func (s *Store) tidy() error {
	entries, err := fs.ReadDir(s.root.FS(), tempDir)
	if err != nil || len(entries) == 0 {
		return err
	}
	lock, err := s.root.Open(tempDir)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
	if err := flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	for _, e := range entries {
		err := s.root.Remove(tempDir + "/" + e.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	return nil
}

// hold keeps others from taking our unfinished files for waste.
func (s *Store) hold() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing != nil {
		return nil
	}
	f, err := s.root.Open(tempDir)
	if err != nil {
		return err
	}
	if err := flock(f, syscall.LOCK_SH); err != nil {
		return errors.Join(err, f.Close())
	}
	s.writing = f
	return nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Dir is the directory of the store, as given to [Open].
func (s *Store) Dir() string { return s.root.Name() }

func path(d evidence.Digest) string { return d.Hex()[:2] + "/" + d.Hex()[2:] }

// Put keeps the bytes and returns their digest. When it returns, they are
// durable. Putting the same bytes again costs one look at the file system.
func (s *Store) Put(ctx context.Context, b []byte) (evidence.Digest, error) {
	d := evidence.DigestOf(b)
	return d, s.put(ctx, d, b)
}

// PutAll is [Store.Put] for several blobs at once, at little more than the cost
// of one. On an error some of them may have been kept, which does no harm.
func (s *Store) PutAll(ctx context.Context, blobs ...[]byte) ([]evidence.Digest, error) {
	out := make([]evidence.Digest, len(blobs))
	first := map[evidence.Digest]int{}
	for i, b := range blobs {
		out[i] = evidence.DigestOf(b)
		if _, ok := first[out[i]]; !ok {
			first[out[i]] = i
		}
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		slot = make(chan struct{}, parallelWrites)
	)
	for d, i := range first {
		slot <- struct{}{}
		wg.Go(func() {
			defer func() { <-slot }()
			if err := s.put(ctx, d, blobs[i]); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return out, nil
}

func (s *Store) put(ctx context.Context, d evidence.Digest, b []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	name := path(d)
	// A file of another size is damage; writing the right bytes over it heals.
	if fi, err := s.root.Lstat(name); err == nil && fi.Mode().IsRegular() && fi.Size() == int64(len(b)) {
		return nil
	}
	if err := s.hold(); err != nil {
		return ioFault(err, "write blob %s in %s", d.Short(), s.Dir())
	}
	temp, err := s.writeTemp(b)
	if err != nil {
		return ioFault(err, "write blob %s in %s", d.Short(), s.Dir())
	}
	if err := s.publish(temp, name); err != nil {
		// The temporary file is of no use to anybody; the next Open gets what stays.
		return ioFault(errors.Join(err, s.root.Remove(temp)), "keep blob %s in %s", d.Short(), s.Dir())
	}
	return nil
}

func (s *Store) writeTemp(b []byte) (name string, err error) {
	var id [16]byte
	rand.Read(id[:]) // never fails
	name = tempDir + "/" + hex.EncodeToString(id[:])
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, s.root.Remove(name))
	}
	return name, nil
}

// publish gives a durable file its name and makes the name durable.
func (s *Store) publish(temp, name string) error {
	dir := name[:2]
	switch err := s.root.Mkdir(dir, 0o700); {
	case err == nil:
		if err := s.syncDir("."); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := s.root.Rename(temp, name); err != nil {
		return err
	}
	return s.syncDir(dir)
}

func (s *Store) syncDir(name string) error {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get returns the bytes with the digest. An absent blob is not_found with code
// evidence_missing; bytes with another digest are tampered with code blob_bad.
func (s *Store) Get(d evidence.Digest) ([]byte, error) {
	if _, err := evidence.ParseDigest(string(d)); err != nil {
		return nil, err
	}
	b, err := s.read(path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, CodeMissing, "blob %s is not in %s", d.Short(), s.Dir())
	}
	if err != nil {
		return nil, ioFault(err, "read blob %s", d.Short())
	}
	if got := evidence.DigestOf(b); got != d {
		return nil, fault.New(fault.Tampered, CodeBad, "blob %s holds bytes with digest %s", d.Short(), got.Short())
	}
	return b, nil
}

var errNotRegular = errors.New("not a regular file")

func (s *Store) read(name string) ([]byte, error) {
	fi, err := s.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fault.Wrap(errNotRegular, fault.Tampered, CodeBad, "%s", name)
	}
	f, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(int(fi.Size()) + bytes.MinRead)
	_, err = buf.ReadFrom(f)
	return buf.Bytes(), errors.Join(err, f.Close())
}

// Has tells whether there is a file under the digest. It does not read it.
func (s *Store) Has(d evidence.Digest) (bool, error) {
	if _, err := evidence.ParseDigest(string(d)); err != nil {
		return false, err
	}
	fi, err := s.root.Lstat(path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, ioFault(err, "look for blob %s", d.Short())
	}
	return fi.Mode().IsRegular(), nil
}

// Walk calls fn with every digest that has a file, in order. Files with other
// names are not ours and are passed over.
func (s *Store) Walk(ctx context.Context, fn func(evidence.Digest) error) error {
	return s.walk(ctx, "", fn)
}

// WithPrefix lists the digests whose hexadecimal digits begin with prefix, which
// has at least two lower-case hexadecimal digits.
func (s *Store) WithPrefix(ctx context.Context, prefix string) ([]evidence.Digest, error) {
	if len(prefix) < 2 || len(prefix) > 64 || strings.Trim(prefix, "0123456789abcdef") != "" {
		return nil, fault.New(fault.Usage, "bad_id", "%.80q is not the beginning of a digest", prefix)
	}
	var out []evidence.Digest
	err := s.walk(ctx, prefix, func(d evidence.Digest) error {
		out = append(out, d)
		return nil
	})
	return out, err
}

func (s *Store) walk(ctx context.Context, prefix string, fn func(evidence.Digest) error) error {
	dirs := []string{prefix}
	if len(prefix) < 2 {
		dirs = nil
		for i := range 256 {
			dirs = append(dirs, hex.EncodeToString([]byte{byte(i)}))
		}
	}
	for _, dir := range dirs {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		entries, err := fs.ReadDir(s.root.FS(), dir[:2])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return ioFault(err, "list blobs in %s/%s", s.Dir(), dir[:2])
		}
		for _, e := range entries {
			d, err := evidence.ParseDigest("sha256:" + dir[:2] + e.Name())
			if err != nil || !strings.HasPrefix(d.Hex(), prefix) {
				continue
			}
			if err := fn(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove deletes a blob; an absent one is no error. Only garbage collection
// calls it, for blobs that no entry of the ledger cites.
func (s *Store) Remove(d evidence.Digest) error {
	if _, err := evidence.ParseDigest(string(d)); err != nil {
		return err
	}
	if err := s.root.Remove(path(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioFault(err, "remove blob %s", d.Short())
	}
	return nil
}

// ioFault gives an error of the file system its code; a fault stays what it is.
func ioFault(err error, what string, args ...any) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return fmt.Errorf(what+": %w", append(args, err)...)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.Internal, CodeNoSpace, what, args...).Hint("proveto gc")
	}
	return fault.Wrap(err, fault.Internal, CodeIO, what, args...)
}
