package auth

import (
	"os"
	"strings"

	"github.com/nats-io/jwt/v2"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// AuditorOf reads from a file of credentials which auditor it lets in. ok is
// false for any other role, and for what is no such file.
func AuditorOf(creds string) (name string, ok bool) {
	data, err := os.ReadFile(creds)
	if err != nil {
		return "", false
	}
	token, err := jwt.ParseDecoratedJWT(data)
	if err != nil {
		return "", false
	}
	user, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return "", false
	}
	next := AuditAPI + strings.TrimPrefix(consumerAPI, jsAPI) + "MSG.NEXT." + eventstore.StreamEvents + "." + eventstore.AuditDurable("")
	for _, subject := range user.Pub.Allow {
		if name, ok := strings.CutPrefix(subject, next); ok && name != "" {
			return name, true
		}
	}
	return "", false
}
