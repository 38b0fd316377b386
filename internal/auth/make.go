package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/rollcall-dev/rollcall/domain"
)

// Plan says what an installation is to have.
type Plan struct {
	// Servers of its own cluster; none when it uses NATS servers of somebody's.
	Servers  []Server
	Tenants  []string
	Auditors []Auditor
}

// Made is what Init and Add tell.
type Made struct {
	// Dir is the directory.
	Dir string `json:"dir"`
	// Conf is the file of it for NATS servers that are not ours.
	Conf string `json:"nats_conf"`
	// CA is the authority by which clients know the servers.
	CA string `json:"ca,omitempty"`
	// URL of the servers, for clients.
	URL   string `json:"url,omitempty"`
	Roles []Role `json:"roles"`
	// Folders to be copied to machines; none without servers of its own.
	Folders []Folder `json:"folders,omitempty"`
}

// Role is somebody who is let in.
type Role struct {
	// Role is node, client, auditor or system.
	Role string `json:"role"`
	// Name of the auditor.
	Name string `json:"name,omitempty"`
	// Tenant to which the role is limited.
	Tenant string `json:"tenant,omitempty"`
	// Creds is the file that lets him in.
	Creds string `json:"creds"`
	// Durable is the consumer by which an auditor reads.
	Durable string `json:"durable,omitempty"`
	// New is false for what was there before.
	New bool `json:"new"`
}

// Folder is what one machine needs, to be copied there.
type Folder struct {
	// Server that the machine runs; empty: none.
	Server string `json:"server,omitempty"`
	// Dir is the folder.
	Dir string `json:"dir"`
	// Changed is true when the machine's copy is out of date.
	Changed bool `json:"changed"`
}

// Init makes the directory, which must not be there yet or be empty. It is
// there whole or not at all.
func Init(dir string, plan Plan, now time.Time) (*Made, error) {
	if err := plan.check(); err != nil {
		return nil, err
	}
	if err := ofTenants(plan.Auditors, plan.Tenants); err != nil {
		return nil, err
	}
	if err := vacant(dir); err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(whole), modeDir)
	}
	if err != nil {
		return nil, unusable(dir, err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(whole), ".rollcall-auth-*") // made with mode 0700
	if err != nil {
		return nil, unusable(dir, err)
	}
	made, err := build(folder(tmp), plan, now)
	if err == nil {
		_ = os.Remove(whole) // an empty one would be in the way
		err = os.Rename(tmp, whole)
	}
	if err != nil {
		return nil, errors.Join(unusable(dir, err), os.RemoveAll(tmp))
	}
	return made.at(tmp, dir), nil
}

func build(f folder, plan Plan, now time.Time) (*Made, error) {
	in := installation{Version: layoutVersion, Servers: plan.Servers, Tenants: plan.Tenants, Auditors: plan.Auditors}
	if len(plan.Servers) > 0 {
		if err := certify(f, plan.Servers, now); err != nil {
			return nil, err
		}
	}
	return fill(f, in)
}

// certify makes the authority and the servers' certificates.
func certify(f folder, servers []Server, now time.Time) error {
	ca, err := newAuthority(now)
	if err != nil {
		return err
	}
	key, err := keyPEMOf(ca.key)
	if err != nil {
		return err
	}
	if _, err := f.write(key, dirKeys, fileCAKey); err != nil {
		return err
	}
	if _, err := f.write(certPEMOf(ca.cert.Raw), fileCA); err != nil {
		return err
	}
	for _, s := range servers {
		cert, key, err := ca.server(s.Host, now)
		if err != nil {
			return err
		}
		if _, err := f.write(cert, s.Name, fileCert); err != nil {
			return err
		}
		if _, err := f.write(key, s.Name, fileKey); err != nil {
			return err
		}
	}
	return nil
}

// Add makes further tenants and auditors in a directory that Init made. What is
// there already stays as it is, so it may be repeated.
func Add(dir string, tenants []string, auditors []Auditor) (*Made, error) {
	if err := (Plan{Tenants: tenants, Auditors: auditors}).check(); err != nil {
		return nil, err
	}
	f := folder(dir)
	data, err := f.read(fileInstallation)
	var in installation
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	switch {
	case err == nil && in.Version > layoutVersion:
		return nil, domain.Refuse("roles-unusable", "the roles in "+dir+" cannot be changed", "a newer Rollcall made them", "use that version here too")
	case errors.Is(err, fs.ErrNotExist):
		return nil, domain.Refuse("roles-not-found", "there are no roles in "+dir, "it has no "+fileInstallation, "rollcall auth init "+dir)
	case err != nil:
		return nil, unusable(dir, err)
	case !f.has(dirKeys, "operator.nk"):
		return nil, domain.Refuse("roles-not-found", "no role can be added in "+dir, "the keys are not there", "name the directory that rollcall auth init made, with its folder keys; the folder of a machine has none")
	}
	for _, t := range tenants {
		if !slices.Contains(in.Tenants, t) {
			in.Tenants = append(in.Tenants, t)
		}
	}
	if err := ofTenants(auditors, in.Tenants); err != nil {
		return nil, err
	}
	for _, a := range auditors {
		i := slices.IndexFunc(in.Auditors, func(b Auditor) bool { return b.Name == a.Name })
		switch {
		case i < 0:
			in.Auditors = append(in.Auditors, a)
		case in.Auditors[i] != a:
			return nil, domain.Refuse("auditor-exists", "auditor "+a.Name+" is there already", "for "+whose(in.Auditors[i].Tenant)+", not for "+whose(a.Tenant), "choose another name")
		}
	}
	made, err := fill(f, in)
	if err != nil {
		return nil, unusable(dir, err)
	}
	return made, nil
}

// ofTenants refuses an auditor of a tenant that the installation does not have.
func ofTenants(auditors []Auditor, tenants []string) error {
	for _, a := range auditors {
		if a.Tenant != "" && !slices.Contains(tenants, a.Tenant) {
			return domain.Refuse("tenant-unknown", "auditor "+a.Name+" cannot read the log of tenant "+a.Tenant, "the tenants of the installation are "+strings.Join(tenants, ", "),
				"name one of them, or add this one with --tenant "+a.Tenant)
		}
	}
	return nil
}

func whose(tenant string) string {
	if tenant == "" {
		return "all tenants"
	}
	return "tenant " + tenant
}

func (p Plan) check() error {
	if err := checkServers(p.Servers); err != nil {
		return err
	}
	for _, t := range p.Tenants {
		if err := checkTenant(t); err != nil {
			return err
		}
	}
	for i, a := range p.Auditors {
		if err := checkAuditor(a); err != nil {
			return err
		}
		if slices.ContainsFunc(p.Auditors[:i], func(b Auditor) bool { return b.Name == a.Name && b != a }) {
			return domain.Refuse("usage", "two auditors cannot have the name "+a.Name, "", "give each a name of its own")
		}
	}
	return nil
}

// vacant refuses a directory that is in use: keys are never overwritten.
func vacant(dir string) error {
	if dir == "" {
		return domain.Refuse("usage", "no directory is named", "", "rollcall auth init DIR")
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unusable(dir, err)
	case len(entries) == 0:
		return nil
	}
	if folder(dir).has(fileInstallation) {
		return domain.Refuse("roles-exist", "there are roles in "+dir+" already", "making them again would lock out whoever uses them", "add to them with rollcall auth add "+dir+", or name another directory")
	}
	return domain.Refuse("roles-exist", dir+" is not empty", "what is there stays", "name a directory that is new")
}

func unusable(dir string, err error) error {
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		return r
	}
	return domain.Refuse("roles-unusable", "the directory "+dir+" cannot be used", err.Error(), "name one that can be read and written")
}

// at moves all paths from one directory to another.
func (m *Made) at(from, to string) *Made {
	move := func(p *string) {
		if rel, err := filepath.Rel(from, *p); *p != "" && err == nil {
			*p = filepath.Join(to, rel)
		}
	}
	move(&m.Dir)
	move(&m.Conf)
	move(&m.CA)
	for i := range m.Roles {
		move(&m.Roles[i].Creds)
	}
	for i := range m.Folders {
		move(&m.Folders[i].Dir)
	}
	return m
}

// keysOf are the keys that everything is signed with.
type keysOf struct {
	operator nkeys.KeyPair
	system   account
	nodes    account
}

func (f folder) keys() (k keysOf, err error) {
	if k.operator, err = f.key(nkeys.PrefixByteOperator, "operator"); err != nil {
		return k, fmt.Errorf("operator: %w", err)
	}
	k.system, k.nodes = account{name: "SYS"}, account{name: "ROLLCALL"}
	if k.system.key, err = f.key(nkeys.PrefixByteAccount, "system"); err != nil {
		return k, fmt.Errorf("system account: %w", err)
	}
	if k.nodes.key, err = f.key(nkeys.PrefixByteAccount, "nodes"); err != nil {
		return k, fmt.Errorf("nodes' account: %w", err)
	}
	return k, nil
}
