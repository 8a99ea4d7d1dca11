package identity

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentPatience is how long ssh-agent may take to list its keys. Signing has no
// limit but its context: a security key waits for a touch.
const agentPatience = 5 * time.Second

// agentSocket is the socket of an ssh-agent; empty when there is none.
type agentSocket string

var errNoAgent = errors.New("there is no ssh-agent (SSH_AUTH_SOCK)")

// with calls a function with a connection that ends with the context.
func (s agentSocket) with(ctx context.Context, use func(agent.ExtendedAgent) error) (err error) {
	if s == "" {
		return errNoAgent
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", string(s))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer func() {
		stop()
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	return use(agent.NewClient(conn))
}

// keys lists the keys of types that count.
func (s agentSocket) keys(ctx context.Context) ([]Key, error) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	var out []Key
	err := s.with(ctx, func(a agent.ExtendedAgent) error {
		list, err := a.List()
		if err != nil {
			return err
		}
		for _, k := range list {
			pub, err := ssh.ParsePublicKey(k.Blob)
			if err != nil || weak(pub) != "" {
				continue // a certificate, or a key for other uses
			}
			out = append(out, s.key(pub))
		}
		return nil
	})
	return out, err
}

// key signs by the agent, which may have lost the key by then.
func (s agentSocket) key(pub ssh.PublicKey) Key {
	return Key{pub: pub, signFunc: func(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
		var flags agent.SignatureFlags
		if algorithm == ssh.KeyAlgoRSASHA512 {
			flags = agent.SignatureFlagRsaSha512
		}
		var sig *ssh.Signature
		err := s.with(ctx, func(a agent.ExtendedAgent) (err error) {
			if sig, err = a.SignWithFlags(pub, data, flags); err == nil {
				err = pub.Verify(data, sig) // what an agent returns is not taken on trust
			}
			return err
		})
		return sig, err
	}}
}

// find looks for a key among those of the agent.
func (s agentSocket) find(ctx context.Context, print string) (Key, error) {
	if s == "" {
		return Key{}, nil
	}
	list, err := s.keys(ctx)
	for _, k := range list {
		if k.Fingerprint() == print {
			return k, nil
		}
	}
	return Key{}, err
}
