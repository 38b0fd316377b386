package natsd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/rollcall-dev/rollcall/domain"
)

// Operator is a NATS operator and the accounts it vouches for, as JWTs: nobody
// else gets in, and no account can be made without the operator's key.
type Operator struct {
	// JWT of the operator, which names the system account.
	JWT string
	// Account gives an account by its public key. It is asked when somebody of
	// an account comes that is not known yet, so it may know more each time.
	Account func(key string) (jwt string, err error)
	// Creds is the file with which Connect opens the server to this process.
	Creds string
}

// TLS names the files that a server is known by: its certificate for servers
// and clients, and the authority that signed those of the other servers.
type TLS struct {
	CA, Cert, Key string
}

// closed refuses a server that strangers on the network could use.
func (c Config) closed() error {
	open := ""
	switch {
	case c.Port != 0 && !loopback(c.Host):
		open = c.Host
	case c.Cluster != nil && !loopback(c.Cluster.Host):
		open = c.Cluster.Host
	default:
		return nil
	}
	why := ""
	switch {
	case c.TLS == nil:
		why = "without TLS everybody on the way could read it, and any server could join"
	case c.Operator == nil && c.Token == "":
		why = "it would ask nobody who he is"
	default:
		return nil
	}
	return domain.Refuse("listening-open", "the embedded NATS server does not listen on "+open, why,
		"listen on 127.0.0.1, or make certificates and roles with rollcall auth init DIR --server NAME=HOST")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}

// handshake is how many seconds a TLS handshake may take on a busy machine, and
// a client until it has said who it is; the server's own default of two would
// keep its routes apart, and turn clients away.
const handshake = 10

// secure adds who may come in, and the certificates, to the options.
func secure(opts *server.Options, cfg Config) error {
	if o := cfg.Operator; o != nil {
		if err := trust(opts, o); err != nil {
			return err
		}
	}
	if cfg.TLS == nil {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLS.Cert, cfg.TLS.Key)
	if err != nil {
		return fmt.Errorf("load the server's certificate: %w", err)
	}
	pem, err := os.ReadFile(cfg.TLS.CA)
	if err != nil {
		return fmt.Errorf("load the certificates' authority: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return errors.New("load the certificates' authority: " + cfg.TLS.CA + " has no certificate")
	}
	certs := []tls.Certificate{cert}
	opts.TLS, opts.TLSTimeout = true, handshake
	opts.TLSConfig = &tls.Config{Certificates: certs, MinVersion: tls.VersionTLS12}
	if cfg.Cluster != nil {
		opts.Cluster.TLSTimeout = handshake
		opts.Cluster.TLSConfig = &tls.Config{
			Certificates: certs, MinVersion: tls.VersionTLS13,
			RootCAs: authority, ClientCAs: authority, ClientAuth: tls.RequireAndVerifyClientCert,
		}
	}
	return nil
}

func trust(opts *server.Options, o *Operator) error {
	operator, err := jwt.DecodeOperatorClaims(o.JWT)
	if err != nil {
		return fmt.Errorf("read the operator's JWT: %w", err)
	}
	opts.TrustedOperators = []*jwt.OperatorClaims{operator}
	opts.SystemAccount = operator.SystemAccount
	opts.AccountResolver = accounts{o.Account}
	return nil
}

// accounts gives the server what it asks for and takes nothing from it.
type accounts struct {
	account func(key string) (string, error)
}

func (a accounts) Fetch(key string) (string, error) { return a.account(key) }
func (accounts) Store(string, string) error         { return errors.ErrUnsupported }
func (accounts) IsReadOnly() bool                   { return true }
func (accounts) Start(*server.Server) error         { return nil }
func (accounts) IsTrackingUpdate() bool             { return false }
func (accounts) Reload() error                      { return nil }
func (accounts) Close()                             {}
