// Command scheduler is Dapr's scheduler service (durable reminders).
package main

import "github.com/dapr/dapr/cmd/scheduler/app"

func main() { app.Run() }
