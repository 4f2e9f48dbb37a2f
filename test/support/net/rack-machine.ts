/** Run in a namespace: a machine that its server drives, with one disk; says how it ended as a line of JSON. */
import { z } from 'zod'
import { driveMachine } from '../terminal/remote-fixture.ts'
import { PLACE } from './rack-place.ts'

const OrderSchema = z.object({
  server: z.string(),
  mac: z.string(),
  disk: z.string(),
  listen: z.array(z.string()),
  meminfo: z.string(),
})

const { server, mac, disk, listen, meminfo } = OrderSchema.parse(JSON.parse(process.argv[2] ?? ''))
const { outcome, said } = await driveMachine({
  server,
  mac,
  places: { [PLACE]: disk },
  parts: { peerPaths: { listen, meminfo } },
})
const notice = outcome.kind === 'interactive' ? outcome.start.notice : null
process.stdout.write(`${JSON.stringify({ kind: outcome.kind, notice, said })}\n`)
process.exit(0)
