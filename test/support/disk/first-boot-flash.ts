/** A flash with a first-boot configuration as a process of its own, which can be killed: `node … IMAGE DEVICE GATE COUNT`. */
import { writeFileSync } from 'node:fs'
import { createFlasher } from '../../../runtime/engine/flash/flasher.ts'
import { SEED } from './first-boot-image.ts'

/** COUNT goes into the file GATE before anything of the configuration is written. */
async function main([image = '', target = '', gate = '', count = '']: readonly string[]) {
  const flasher = createFlasher({ env: process.env })
  const { signal } = new AbortController()
  const options = {
    verify: 'data',
    sha256: null,
    allowPartition: false,
    fixGpt: false,
    grow: false,
  } as const
  const order = { image, format: null, target, options, firstBoot: SEED }
  await using planned = await flasher.plan(order, signal)
  await flasher.run(planned, {
    signal,
    onEvent({ event }) {
      if (event === 'provisioning') writeFileSync(gate, count)
    },
  })
}

await main(process.argv.slice(2))
