package api

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// Target says where a node's NATS is. URL wins over Dir.
type Target struct {
	// URL of a NATS somewhere, and what opens it: paths of files (Creds, NKey,
	// CA, Cert, Key) and words.
	URL                   string
	Creds, NKey           string
	CA, Cert, Key         string
	User, Password, Token string
	// Dir is the data directory of a local node, which says in node.json where
	// it listens.
	Dir string
}

// At is where a joined node says its servers are.
func At(n nodefile.Info) Target {
	return Target{
		URL: n.URL, Token: n.Token, User: n.User, Password: n.Password,
		Creds: n.Creds, NKey: n.NKey, CA: n.CA, Cert: n.Cert, Key: n.Key,
	}
}

// Connect dials and makes a client that owns the connection: Close it.
func Connect(t Target, tenant, name string) (*Client, error) {
	nc, err := Dial(t, name)
	if err != nil {
		return nil, err
	}
	c := NewClient(nc, tenant)
	c.owned = true
	return c, nil
}

// Dial connects. A connection to a local node survives the node's restart on
// another port, because each dial reads node.json again. The error is a
// *domain.Refusal.
func Dial(t Target, name string, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(20*time.Millisecond, 20*time.Millisecond),
		// What cannot be sent now is tried again by the request itself.
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.Timeout(2 * time.Second),
		// What goes wrong in the background shows in the requests.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, more...)
	if t.URL != "" {
		return dialURL(t, options)
	}
	info, err := nodefile.Read(t.Dir)
	if err != nil {
		return nil, noNode(t.Dir, err)
	}
	if info.Joined {
		return dialURL(At(info), options)
	}
	d := &nodeDialer{dir: t.Dir}
	nc, err := nats.Connect("nats://127.0.0.1", append(options, nats.SetCustomDialer(d), nats.TokenHandler(d.Token))...)
	if err != nil {
		return nil, noNode(t.Dir, err)
	}
	return nc, nil
}

func dialURL(t Target, options []nats.Option) (*nats.Conn, error) {
	if err := t.readable(); err != nil {
		return nil, err
	}
	options, err := t.credentials(options)
	if err == nil {
		var nc *nats.Conn
		if nc, err = nats.Connect(t.URL, options...); err == nil {
			return nc, nil
		}
	}
	return nil, domain.Refuse("nats-unreachable", "cannot connect to NATS at "+redacted(t.URL), err.Error(),
		"check NATS_URL, NATS_CREDS and NATS_CA (the ca.pem that rollcall auth init made), or NATS_CONTEXT")
}

// readable refuses files that open NATS and cannot be used: that is no matter
// of the network.
func (t Target) readable() error {
	for _, f := range []struct{ path, is, set string }{
		{t.Creds, "credentials", "NATS_CREDS"},
		{t.NKey, "nkey", ""},
		{t.CA, "certificates of the authority", "NATS_CA"},
		{t.Cert, "certificate", ""},
		{t.Key, "key of the certificate", ""},
	} {
		if f.path == "" {
			continue
		}
		data, err := os.ReadFile(f.path)
		why := ""
		switch failed, ok := errors.AsType[*fs.PathError](err); {
		case ok:
			why = failed.Err.Error()
		case err != nil:
			why = err.Error()
		case f.path == t.Creds && !isCreds(data):
			why = "it holds no credentials of NATS: a JWT and a key"
		case f.path == t.CA && !x509.NewCertPool().AppendCertsFromPEM(data):
			why = "it holds no certificate in PEM"
		default:
			continue
		}
		try := "name a file that can be read in the NATS context"
		if f.set != "" {
			try = "name a file that can be read, with " + f.set + " or in the NATS context"
		}
		return domain.Refuse("credentials-unreadable", "the "+f.is+" in "+quote(f.path)+" cannot be used", why, try)
	}
	return nil
}

func isCreds(data []byte) bool {
	token, err := nkeys.ParseDecoratedJWT(data)
	if err != nil || token == "" {
		return false
	}
	key, err := nkeys.ParseDecoratedUserNKey(data)
	if err != nil {
		return false
	}
	key.Wipe()
	return true
}

func (t Target) credentials(options []nats.Option) ([]nats.Option, error) {
	if t.Creds != "" {
		options = append(options, nats.UserCredentials(t.Creds))
	}
	if t.NKey != "" {
		nkey, err := nats.NkeyOptionFromSeed(t.NKey)
		if err != nil {
			return nil, fmt.Errorf("read the nkey: %w", err)
		}
		options = append(options, nkey)
	}
	if t.CA != "" {
		options = append(options, nats.RootCAs(t.CA))
	}
	if t.Cert != "" {
		options = append(options, nats.ClientCert(t.Cert, t.Key))
	}
	if t.User != "" {
		options = append(options, nats.UserInfo(t.User, t.Password))
	}
	if t.Token != "" {
		options = append(options, nats.Token(t.Token))
	}
	return options, nil
}

func noNode(dir string, err error) error {
	why := "it left its address in " + dir + ", but does not answer: " + err.Error()
	if _, unread := nodefile.Read(dir); errors.Is(unread, nodefile.ErrNone) {
		why = "there is no " + nodefile.JSON + " in " + dir
	} else if unread != nil {
		why = unread.Error()
	}
	return domain.Refuse("node-unreachable", "no node is running here", why,
		"start one with rollcall up, or name another with NATS_URL or ROLLCALL_DATA")
}

// nodeDialer dials wherever the node of a data directory listens now.
type nodeDialer struct {
	dir string

	mu    sync.Mutex
	token string
}

// Dial implements nats.CustomDialer; it does not look at the address.
func (d *nodeDialer) Dial(network, _ string) (net.Conn, error) {
	info, err := nodefile.Read(d.dir)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(info.URL)
	if err != nil {
		return nil, fmt.Errorf("dial node: %w", err)
	}
	d.mu.Lock()
	d.token = info.Token
	d.mu.Unlock()
	return net.DialTimeout(network, u.Host, 2*time.Second)
}

// Token that belongs to the address dialed last.
func (d *nodeDialer) Token() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.token
}

// redacted hides what opens the servers: a token can stand where a name does.
func redacted(raw string) string {
	servers := strings.Split(raw, ",")
	for i, server := range servers {
		scheme, rest, ok := strings.Cut(server, "://")
		if !ok {
			scheme, rest = "nats", server
		}
		servers[i] = scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(servers, ",")
}
