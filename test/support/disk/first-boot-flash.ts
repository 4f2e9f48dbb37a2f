/** A flash with a first-boot configuration as a process of its own, which can be killed: `node … IMAGE DEVICE`. */
import { createFlasher } from '../../../runtime/services/flash/flasher.ts'
import { SEED } from './first-boot-image.ts'

/** Each event is a line. */
async function main([image = '', target = '']: readonly string[]) {
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
  const outcome = await flasher.run(planned, {
    signal,
    onEvent: ({ event }) => void process.stdout.write(`${event}\n`),
  })
  process.stdout.write(`${outcome.kind} ${outcome.kind === 'done' ? '' : outcome.reason}\n`)
}

await main(process.argv.slice(2))
