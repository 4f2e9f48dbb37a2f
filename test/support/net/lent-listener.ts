/** Run in a namespace: listens at ADDRESS PORT there, and has the process outside take the connections. */
import { createServer } from 'node:net'

const [address = '', port = ''] = process.argv.slice(2)
const server = createServer()
// Whoever has the listener too would take every other connection.
server.listen(Number(port), address, () => {
  process.send?.('listener', server, {}, () => void server.close())
})
