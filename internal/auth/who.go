package auth

import (
	"os"
	"strings"

	"github.com/nats-io/jwt/v2"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// AuditorOf reads from a file of credentials which auditor it lets in. ok is
// false for any other role, and for what is no such file.
func AuditorOf(creds string) (name string, ok bool) {
	next := AuditAPI + strings.TrimPrefix(consumerAPI, jsAPI) + "MSG.NEXT." + eventstore.StreamEvents + "." + eventstore.AuditDurable("")
	for _, subject := range allowed(creds) {
		if name, ok := strings.CutPrefix(subject, next); ok && name != "" {
			return name, true
		}
	}
	return "", false
}

// ClientOf reads from a file of credentials which tenant's clients it lets in.
// ok is false for any other role, and for what is no such file.
func ClientOf(creds string) (tenant string, ok bool) {
	for _, subject := range allowed(creds) {
		of, api := strings.CutPrefix(subject, "rollcall.api.")
		of, all := strings.CutSuffix(of, ".>")
		if api && all && domain.ValidToken(of) {
			return of, true
		}
	}
	return "", false
}

// allowed are the subjects that a file of credentials lets its user publish to;
// none where it says nothing of them.
func allowed(creds string) []string {
	data, err := os.ReadFile(creds)
	if err != nil {
		return nil
	}
	token, err := jwt.ParseDecoratedJWT(data)
	if err != nil {
		return nil
	}
	user, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return nil
	}
	return user.Pub.Allow
}
