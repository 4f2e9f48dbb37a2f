/** A flash with a first-boot configuration as a process of its own, which can be killed: `node … IMAGE DEVICE GATE COUNT`. */
import { writeFileSync } from 'node:fs'
import { WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { SEED } from './first-boot-image.ts'

/** COUNT goes into the file GATE before anything of the configuration is written. */
async function main([image = '', path = '', gate = '', count = '']: readonly string[]) {
  const flasher = createFlasher({ env: process.env })
  const { signal } = new AbortController()
  const order = { image, format: null, targets: [{ path }], options: WHOLE_DISK, firstBoot: SEED }
  await flasher.flash(order, {
    signal,
    onEvent({ event }) {
      if (event === 'provisioning') writeFileSync(gate, count)
    },
  })
}

await main(process.argv.slice(2))
