/** pnpm bench:server: flasher-web beside a bare h3 route, a bare handler and nginx, in one run. */
import { parseArgs } from 'node:util'
import { measureBoot } from './server-boot.ts'
import { measureFleet } from './server-fleet.ts'
import { measureRoutes } from './server-routes.ts'
import { measureStorm } from './server-storm.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    parts: { type: 'string', default: 'routes,boot,storm,fleet' },
  },
})
const [runs, seconds] = [Number(values.runs), Number(values.seconds)]
const parts = new Set(values.parts.split(','))
if (parts.has('routes')) console.log((await measureRoutes(runs, seconds)).bars)
if (parts.has('boot')) console.log((await measureBoot(runs)).bars)
if (parts.has('storm')) console.log((await measureStorm(runs)).bars)
if (parts.has('fleet')) console.log((await measureFleet(runs, seconds)).bars)
