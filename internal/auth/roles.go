package auth

import (
	"cmp"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// A share is a subject of the nodes' account that another account may reach:
// a service that it asks, or else a stream that it hears.
type share struct {
	name    string
	subject string
	// local is the subject's name in the account that takes it; empty: the same.
	local   string
	service bool
	// many is true where one request has several answers.
	many bool
}

// exports are all that leaves the nodes' account, and none of it without a
// token for the account that takes it. A share of a role is a part of one.
var exports = []share{
	{name: "messages", subject: "rollcall.in.*.*.*", service: true},
	{name: "service", subject: "rollcall.api.*.>", service: true, many: true},
	{name: "feed", subject: "rollcall.feed.*.*"},
	{name: "audit-next", subject: consumerAPI + "MSG.NEXT." + eventstore.StreamEvents + ".*", service: true, many: true},
	{name: "audit-info", subject: consumerAPI + "INFO." + eventstore.StreamEvents + ".*", service: true},
	{name: "audit-reset", subject: consumerAPI + "RESET." + eventstore.StreamEvents + ".*", service: true},
	{name: "log-info", subject: logInfo, service: true},
	{name: "body", subject: bodies, service: true, many: true},
	{name: "body-of", subject: bodies + ".>", service: true, many: true},
}

const (
	jsAPI       = "$JS.API"
	consumerAPI = jsAPI + ".CONSUMER."
	logInfo     = jsAPI + ".STREAM.INFO." + eventstore.StreamEvents
	bodies      = jsAPI + ".DIRECT.GET.OBJ_" + eventstore.BucketBlobs
)

// clientShares are what the clients of a tenant reach, and all that they do.
// The subjects name the tenant: that is what fixes it.
func clientShares(tenant string) []share {
	return []share{
		{name: "messages", subject: "rollcall.in." + tenant + ".*.*", service: true},
		{name: "service", subject: "rollcall.api." + tenant + ".>", service: true},
		{name: "feed", subject: "rollcall.feed." + tenant + ".*"},
	}
}

// Auditor reads the log, of one tenant or, when none is named, of all, and
// changes nothing but where it reads on.
type Auditor struct {
	Name   string `json:"name"`
	Tenant string `json:"tenant,omitempty"`
}

// Durable is the auditor's consumer on the log, which has to be there before
// the auditor comes: nobody who reads may make one.
func (a Auditor) Durable() string { return eventstore.AuditDurable(a.Name) }

// Filter is the subject that the durable consumer is limited to.
func (a Auditor) Filter() string { return eventstore.AuditFilter(a.Tenant) }

// AuditAPI is what the auditor's JetStream API begins with, in place of
// "$JS.API": under that name his own account, which has no JetStream, would
// answer beside the nodes'.
const AuditAPI = "rollcall.audit"

// auditorShares are what an auditor reaches. It has no account in common with
// the log: there, the reply subject of a pull would be published to with the
// server's own rights, and a commit could be forged by it.
func auditorShares(a Auditor) []share {
	log := eventstore.StreamEvents + "." + a.Durable()
	shares := []share{
		audit("audit-next", consumerAPI+"MSG.NEXT."+log),
		audit("audit-info", consumerAPI+"INFO."+log),
		audit("audit-reset", consumerAPI+"RESET."+log),
	}
	if a.Tenant != "" {
		// The store of bodies is not divided by tenant, the service is.
		return append(shares, share{name: "service", subject: "rollcall.api." + a.Tenant + ".blob", service: true})
	}
	return append(shares, audit("log-info", logInfo), audit("body", bodies), audit("body-of", bodies+".>"))
}

func audit(name, subject string) share {
	return share{name: name, subject: subject, local: AuditAPI + strings.TrimPrefix(subject, jsAPI), service: true}
}

// inAccount is the subject by which the account that takes it knows it.
func (s share) inAccount() string { return cmp.Or(s.local, s.subject) }

// inboxes are where answers come. An account of a role has one user, so nobody
// else's are there.
const inboxes = "_INBOX.>"

// rights are the subjects that a role may publish to and subscribe to.
func rights(shares []share) (publish, subscribe []string) {
	subscribe = []string{inboxes}
	for _, s := range shares {
		if s.service {
			publish = append(publish, s.inAccount())
		} else {
			subscribe = append(subscribe, s.inAccount())
		}
	}
	return publish, subscribe
}

func checkTenant(t string) error {
	if domain.ValidToken(t) {
		return nil
	}
	return domain.Refuse("tenant-invalid", quoted(t)+" is no tenant", tokenRule("a tenant"), "use main")
}

func checkAuditor(a Auditor) error {
	// The name stands in a subject with a prefix.
	if !domain.ValidToken(a.Durable()) || a.Name == "" {
		return domain.Refuse("auditor-invalid", quoted(a.Name)+" is no name of an auditor", "it is at most 58 of a-z, 0-9, '-' and '_'", "use a name such as alice")
	}
	if a.Tenant != "" {
		return checkTenant(a.Tenant)
	}
	return nil
}
