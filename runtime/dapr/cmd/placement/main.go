// Command placement is Dapr's actor placement service.
package main

import "github.com/dapr/dapr/cmd/placement/app"

func main() { app.Run() }
