// Command daprd is Dapr's own sidecar with the stock stable components, plus the two that Docket's
// embedded profile needs and that Dapr's "stablecomponents" tag leaves out: NATS JetStream pub/sub
// and the SQLite name resolver (service lookup without multicast DNS).
package main

import (
	nrsqlite "github.com/dapr/components-contrib/nameresolution/sqlite"
	"github.com/dapr/components-contrib/pubsub/jetstream"
	"github.com/dapr/dapr/cmd/daprd/app"
	nrloader "github.com/dapr/dapr/pkg/components/nameresolution"
	pubsubloader "github.com/dapr/dapr/pkg/components/pubsub"
)

func main() {
	pubsubloader.DefaultRegistry.RegisterComponent(jetstream.NewJetStream, "jetstream")
	nrloader.DefaultRegistry.RegisterComponent(nrsqlite.NewResolver, "sqlite")
	app.Run()
}
