package auth

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
)

// fill writes all that is missing of an installation, and what follows from it.
// Keys, JWTs and credentials that are there are left alone. The installation's
// own file comes last, so that what was cut short is done by a repetition.
func fill(f folder, in installation) (*Made, error) {
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	if !f.has(fileOperator) {
		token, err := operatorJWT(keys.operator, keys.system.key)
		if err == nil {
			_, err = f.write([]byte(token), fileOperator)
		}
		if err != nil {
			return nil, err
		}
	}
	w := &writer{folder: f, keys: keys, made: &Made{Dir: string(f), Conf: f.path(fileConf)}}
	w.role(keys.system, "system", Role{Role: "system", Creds: f.path(fileSystem)}, systemJWT)
	w.role(keys.nodes, "nodes", Role{Role: "node", Creds: f.path(fileNode)}, nodesJWT)
	for _, t := range in.Tenants {
		w.outsider("tenant-"+t, clientShares(t), Role{Role: "client", Tenant: t, Creds: f.path("client-" + t + ".creds")})
	}
	for _, a := range in.Auditors {
		w.outsider("auditor-"+a.Name, auditorShares(a), Role{Role: "auditor", Name: a.Name, Tenant: a.Tenant, Durable: a.Durable(), Creds: f.path("auditor-" + a.Name + ".creds")})
	}
	w.conf()
	w.bundles(in)
	if w.err == nil {
		_, w.err = f.writeJSON(in, fileInstallation)
	}
	return w.made, w.err
}

// writer stops at the first error.
type writer struct {
	folder
	keys keysOf
	made *Made
	// accounts are the JWTs in the order they were made, with their keys.
	accounts []accountJWT
	err      error
}

type accountJWT struct{ file, key, token string }

// role writes an account and the credentials of its one user.
func (w *writer) role(a account, file string, r Role, sign func(nkeys.KeyPair, account) (string, error)) {
	if w.err != nil {
		return
	}
	made := accountJWT{file: file + ".jwt"}
	if made.key, w.err = public(a.key); w.err != nil {
		return
	}
	if token, err := w.read(dirAccounts, made.file); err == nil {
		made.token = string(token)
	} else if made.token, w.err = sign(w.keys.operator, a); w.err == nil {
		_, w.err = w.write([]byte(made.token), dirAccounts, made.file)
	}
	name := filepath.Base(r.Creds)
	if w.err == nil && !w.has(name) {
		var data []byte
		if data, w.err = creds(a, strings.TrimSuffix(name, ".creds")); w.err == nil {
			r.New, w.err = w.write(data, name)
		}
	}
	w.accounts = append(w.accounts, made)
	w.made.Roles = append(w.made.Roles, r)
}

// outsider writes a role that has an account of its own.
func (w *writer) outsider(name string, shares []share, r Role) {
	if w.err != nil {
		return
	}
	a := account{name: name, shares: shares}
	if a.key, w.err = w.key(nkeys.PrefixByteAccount, name); w.err != nil {
		return
	}
	w.role(a, name, r, func(operator nkeys.KeyPair, a account) (string, error) { return roleJWT(operator, a, w.keys.nodes) })
}

// conf writes what a NATS server that is not ours includes.
func (w *writer) conf() {
	if w.err != nil {
		return
	}
	operator, err := w.read(fileOperator)
	if w.err = err; err != nil {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Made by rollcall auth; rollcall auth add makes it anew.
# Include it in the configuration of every NATS server, beside your own
# jetstream, tls and cluster blocks, and reload the servers when it changes.
operator: %s
system_account: %s
resolver: MEMORY
resolver_preload: {
`, operator, w.accounts[0].key)
	for _, a := range w.accounts {
		fmt.Fprintf(&b, "  # %s\n  %s: %s\n", strings.TrimSuffix(a.file, ".jwt"), a.key, a.token)
	}
	b.WriteString("}\n")
	_, w.err = w.write([]byte(b.String()), fileConf)
}

// bundles writes the folder of each machine.
func (w *writer) bundles(in installation) {
	if w.err != nil || len(in.Servers) == 0 {
		return
	}
	w.made.CA, w.made.URL = w.path(fileCA), urls(in.Servers)
	for _, s := range in.Servers {
		w.bundle(s.Name, bundleFile{Version: layoutVersion, Server: s.Name, Servers: in.Servers, Auditors: in.Auditors})
	}
	w.bundle(dirNode, bundleFile{Version: layoutVersion, Servers: in.Servers})
}

func (w *writer) bundle(name string, b bundleFile) {
	out := Folder{Server: b.Server, Dir: w.path(name)}
	note := func(changed bool, err error) {
		out.Changed = out.Changed || changed
		if w.err == nil {
			w.err = err
		}
	}
	copied := func(file string) {
		data, err := w.read(file)
		if err != nil {
			note(false, err)
			return
		}
		note(w.write(data, name, file))
	}
	copied(fileCA)
	copied(fileNode)
	if b.Server != "" {
		copied(fileOperator)
		for _, a := range w.accounts {
			note(w.write([]byte(a.token), name, dirAccounts, a.file))
		}
	}
	note(w.writeJSON(b, name, fileBundle))
	w.made.Folders = append(w.made.Folders, out)
}
