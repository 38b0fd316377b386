package auth

import (
	"fmt"
	"slices"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// An account of the installation: its key, and what it takes from the nodes'.
type account struct {
	name string
	key  nkeys.KeyPair
	// shares it imports; nil for the nodes' and the system account.
	shares []share
}

func public(k nkeys.KeyPair) (string, error) {
	p, err := k.PublicKey()
	if err != nil {
		return "", fmt.Errorf("read a public key: %w", err)
	}
	return p, nil
}

// operatorJWT is the operator, who vouches for himself.
func operatorJWT(operator, system nkeys.KeyPair) (string, error) {
	own, err := public(operator)
	if err != nil {
		return "", err
	}
	c := jwt.NewOperatorClaims(own)
	c.Name = "rollcall"
	if c.SystemAccount, err = public(system); err != nil {
		return "", err
	}
	return c.Encode(operator)
}

// nodesJWT is the account of the nodes: the only one with JetStream, and the
// only one that exports.
func nodesJWT(operator nkeys.KeyPair, nodes account) (string, error) {
	c, err := newAccount(nodes)
	if err != nil {
		return "", err
	}
	c.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
		MaxAckPending: jwt.NoLimit, MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
	}
	for _, s := range exports {
		e := &jwt.Export{Name: s.name, Subject: jwt.Subject(s.subject), Type: jwt.Stream, TokenReq: true}
		if s.service {
			e.Type, e.ResponseType = jwt.Service, jwt.ResponseTypeSingleton
		}
		if s.many {
			e.ResponseType = jwt.ResponseTypeStream
		}
		c.Exports.Add(e)
	}
	return c.Encode(operator)
}

// systemJWT is the account of those who run the NATS servers.
func systemJWT(operator nkeys.KeyPair, system account) (string, error) {
	c, err := newAccount(system)
	if err != nil {
		return "", err
	}
	return c.Encode(operator)
}

// roleJWT is the account of a tenant or an auditor: no JetStream, no exports,
// no leaf nodes, and a token of the nodes' account for each import.
func roleJWT(operator nkeys.KeyPair, role, nodes account) (string, error) {
	c, err := newAccount(role)
	if err != nil {
		return "", err
	}
	c.Limits.Exports, c.Limits.WildcardExports, c.Limits.LeafNodeConn = 0, false, 0
	from, err := public(nodes.key)
	if err != nil {
		return "", err
	}
	for _, s := range role.shares {
		i := &jwt.Import{Name: s.name, Subject: jwt.Subject(s.subject), LocalSubject: jwt.RenamingSubject(s.local), Account: from, Type: jwt.Stream}
		if s.service {
			i.Type = jwt.Service
		}
		token := jwt.NewActivationClaims(c.Subject)
		token.Name, token.ImportSubject, token.ImportType = s.name, i.Subject, i.Type
		if i.Token, err = token.Encode(nodes.key); err != nil {
			return "", fmt.Errorf("let %s have %s: %w", role.name, s.subject, err)
		}
		c.Imports.Add(i)
	}
	return c.Encode(operator)
}

func newAccount(a account) (*jwt.AccountClaims, error) {
	own, err := public(a.key)
	if err != nil {
		return nil, err
	}
	c := jwt.NewAccountClaims(own)
	c.Name = a.name
	c.Limits.DisallowBearer = true
	return c, nil
}

// creds is the file by which a fresh user of an account is let in. Without
// shares the user may do everything in it.
func creds(a account, user string) ([]byte, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("make a user's key: %w", err)
	}
	own, err := public(key)
	if err != nil {
		return nil, err
	}
	c := jwt.NewUserClaims(own)
	c.Name = user
	c.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard, jwt.ConnectionTypeInProcess, jwt.ConnectionTypeWebsocket}
	if a.shares != nil {
		c.AllowedConnectionTypes = slices.DeleteFunc(c.AllowedConnectionTypes, func(t string) bool { return t == jwt.ConnectionTypeInProcess })
		publish, subscribe := rights(a.shares)
		c.Permissions.Pub.Allow, c.Permissions.Sub.Allow = publish, subscribe
	}
	token, err := c.Encode(a.key)
	if err != nil {
		return nil, fmt.Errorf("let user %s in: %w", user, err)
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("read a user's key: %w", err)
	}
	return jwt.FormatUserConfig(token, seed)
}
