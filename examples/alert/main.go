// Command alert wakes a team's Lead with a framework_alert, as a scheduler does.
// However often it runs with one id, the alert is delivered once.
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	conversation, id, text := os.Args[1], os.Args[2], os.Args[3]
	nc, err := nats.Connect(os.Getenv("NATS_URL"), nats.UserCredentials(os.Getenv("NATS_CREDS")), nats.RootCAs(os.Getenv("NATS_CA")))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	m := nats.NewMsg("rollcall.in.main." + conversation + ".lead")
	m.Header.Set("Rollcall-Id", id)
	m.Header.Set("Content-Type", "application/json")
	m.Data = fmt.Appendf(nil, `{"kind":"framework_alert","text":%q}`, text)
	stored, err := nc.RequestMsg(m, 5*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(stored.Data))
}
