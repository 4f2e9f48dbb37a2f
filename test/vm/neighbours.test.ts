/** The live system reads through the nginx of its own where a plan names neighbours, also when it has none yet. */
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { z } from 'zod'
import { packImage } from '../../runtime/engine/pack/packer.ts'
import { openDebianImage } from '../support/disk/debian-image.ts'
import { LAB_ADDRESS } from '../support/http/namespace.ts'
import { LAB_MAC } from '../support/server/lab.ts'
import { bootToLogin } from '../support/vm/boot.ts'
import { findBuildObstacle } from '../support/vm/built-images.ts'
import { openMachine, startBootLab, waitForEnd } from '../support/vm/pxe-flash.ts'

const test = suite('neighbours of a live system')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const ReadSchema = z.object({
  runs: z.array(
    z.object({
      result: z.string().nullable(),
      sources: z.array(z.object({ name: z.string(), bytes: z.number() })).nullable(),
    }),
  ),
})

run('the first machine of a chain is flashed through its own nginx, and boots', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-neighbours-'))
  const output = join(folder.path, 'debian.img.zst')
  const order = { format: null, sha256: null, output, level: 1 }
  const raw = await (await openDebianImage()).file('img')
  await packImage(
    { env: process.env },
    { ...order, image: raw },
    {
      signal: new AbortController().signal,
      onProgress: () => undefined,
    },
  )
  await using lab = await startBootLab({
    images: [output],
    env: { FLASHER_PEERS_ENABLED: 'true' },
  })
  await using pxe = await openMachine(lab, basename(output))
  await pxe.bind()
  await using machine = await pxe.start('bios-rom')
  await waitForEnd(machine)
  const { runs } = ReadSchema.parse(await lab.ask(`/machines/${LAB_MAC}/runs`))
  assert.is(runs[0]?.result, 'done')
  // The own nginx is never named; a plan without neighbours would name no source.
  assert.equal(
    runs[0]?.sources?.map(({ name }) => name),
    [`http://${LAB_ADDRESS}:8081`],
  )
  assert.ok((runs[0]?.sources?.[0]?.bytes ?? 0) > 1 << 20)
  assert.match(await bootToLogin(pxe.disk), /flasher-test login: $/)
})

test.run()
