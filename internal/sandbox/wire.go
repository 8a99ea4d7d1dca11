package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/proveto/proveto/internal/evidence"
)

// message is one word between a box and its supervisor: a length of four bytes
// (big endian) and JSON. Exactly one field is set. Descriptors travel with the
// length.
type message struct {
	Setup *setup        `json:"setup,omitempty"` // to the supervisor, first and once
	Run   *order        `json:"run,omitempty"`   // to the supervisor, one at a time
	Stop  evidence.Stop `json:"stop,omitempty"`  // to the supervisor, about the command that runs
	Ready *ready        `json:"ready,omitempty"` // answer to Setup
	Ended *ended        `json:"ended,omitempty"` // answer to Run
}

// setup tells the supervisor which walls to put up.
type setup struct {
	Level   evidence.Level `json:"level"`
	Network Network        `json:"network"`
	Walls   []wall         `json:"walls"`
	Scratch string         `json:"scratch,omitempty"` // private directory on disk, below level namespaces
}

// ready is the supervisor's answer to setup.
type ready struct {
	Error string   `json:"error,omitempty"`
	Notes []string `json:"notes,omitempty"` // what is weaker than asked, without losing the level
}

// order is one command. Its descriptors come along, in the order: standard input
// (when Stdin), standard output, standard error, instructions and report (when
// Report).
type order struct {
	Argv   []string        `json:"argv"`
	Env    []string        `json:"env"`
	Dir    string          `json:"dir"`
	Limits evidence.Limits `json:"limits"`
	Stdin  bool            `json:"stdin,omitempty"`
	Report bool            `json:"report,omitempty"`
	Self   bool            `json:"self,omitempty"` // run our own executable instead of Argv[0]
}

// ended tells how a command went. Times are durations in nanoseconds.
type ended struct {
	Errno     int           `json:"errno,omitempty"` // the command could not be started
	Error     string        `json:"error,omitempty"` // what could not be done, when Errno or the walls failed
	Code      int           `json:"code"`
	Signal    int           `json:"signal,omitempty"`
	Stopped   evidence.Stop `json:"stopped,omitempty"`
	Started   time.Time     `json:"started"`
	Wall      time.Duration `json:"wall"`
	CPU       time.Duration `json:"cpu"`
	MaxRSS    int64         `json:"max_rss"`
	Survivors int           `json:"survivors,omitempty"`
}

// maxMessage bounds what either side accepts: environment and arguments are
// bounded by the kernel at about 6 MiB.
const maxMessage = 32 << 20

// maxFiles is the number of descriptors that one message can carry.
const maxFiles = 5

// link is one end of the connection between a box and its supervisor. Sending
// is safe for concurrent use, receiving is for one goroutine.
type link struct {
	conn *net.UnixConn
	mu   sync.Mutex
}

// newLink takes over the descriptor of a connected stream socket.
func newLink(fd int) (*link, error) {
	f := os.NewFile(uintptr(fd), "supervisor link")
	defer f.Close() // FileConn keeps a duplicate
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("supervisor link: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("supervisor link: not a unix socket")
	}
	return &link{conn: u}, nil
}

func (l *link) close() error { return l.conn.Close() }

// send writes one message; the descriptors stay open here.
func (l *link) send(m message, fds ...int) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("supervisor link: %w", err)
	}
	if len(body) > maxMessage {
		return fmt.Errorf("supervisor link: a message of %d bytes is over %d", len(body), maxMessage)
	}
	packet := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _, err := l.conn.WriteMsgUnix(packet, rights, nil)
	if err == nil && n < len(packet) {
		_, err = l.conn.Write(packet[n:])
	}
	if err != nil {
		return fmt.Errorf("supervisor link: %w", err)
	}
	return nil
}

// receive reads one message; the caller owns the descriptors, which are closed
// on exec. At the end of the connection the error is io.EOF.
func (l *link) receive() (message, []int, error) {
	var head [4]byte
	rights := make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, rn, _, _, err := l.conn.ReadMsgUnix(head[:], rights)
	if err != nil || n == 0 {
		if err == nil {
			err = io.EOF
		}
		return message{}, nil, err
	}
	fds, err := parseRights(rights[:rn])
	if err != nil {
		return message{}, nil, err
	}
	m, err := l.body(head, n)
	if err != nil {
		closeAll(fds)
		return message{}, nil, fmt.Errorf("supervisor link: %w", err)
	}
	return m, fds, nil
}

func (l *link) body(head [4]byte, have int) (message, error) {
	var m message
	if _, err := io.ReadFull(l.conn, head[have:]); err != nil {
		return m, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		return m, fmt.Errorf("a message of %d bytes is over %d", size, maxMessage)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(l.conn, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

func parseRights(b []byte) ([]int, error) {
	if len(b) == 0 {
		return nil, nil
	}
	msgs, err := syscall.ParseSocketControlMessage(b)
	if err != nil {
		return nil, fmt.Errorf("supervisor link: %w", err)
	}
	var fds []int
	for i := range msgs {
		got, err := syscall.ParseUnixRights(&msgs[i])
		if err != nil {
			closeAll(fds)
			return nil, fmt.Errorf("supervisor link: %w", err)
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

// closeAll closes descriptors that are of no more use; nothing was written
// through them here, so there is no error to learn from.
func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			syscall.Close(fd)
		}
	}
}
