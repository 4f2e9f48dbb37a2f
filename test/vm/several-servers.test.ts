/** A machine in the middle of its order: the server that gave it the plan is killed, and the flash ends at the other server. */
import { mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { openDebianImage } from '#test/support/disk/debian-image.ts'
import { LAB_ADDRESS } from '#test/support/http/namespace.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { createAsk, LAB_PASSWORD, LAB_SERVER, type Lab } from '#test/support/server/lab.ts'
import { bootToLogin } from '#test/support/vm/boot.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { openMachine, startBootLab, waitFor, waitForEnd } from '#test/support/vm/pxe-flash.ts'
import { collectWords, waitUntil } from '#test/support/waiting.ts'

const test = suite('a server that dies between plan and flash')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher-web.mjs', import.meta.url))
const OTHER_PORT = 8090

/** A second server on the lab's wire, with a state of its own. */
async function startOther(lab: Lab, env: Readonly<Record<string, string>>) {
  const state = join(lab.folder, 'other')
  await mkdir(state, { mode: 0o700 })
  const child = lab.namespace.spawn([process.execPath, PROGRAM], {
    HOME: state,
    FLASHER_PATHS_STATE_DIR: state,
    FLASHER_CONFIG_FILE: '/dev/null',
    FLASHER_ADMIN_PASSWORD: LAB_PASSWORD,
    FLASHER_SERVER_HOST: LAB_ADDRESS,
    FLASHER_SERVER_PORT: String(OTHER_PORT),
    FLASHER_WITHCACHE_URL: `http://${LAB_ADDRESS}:8081`,
    ...env,
  })
  return { said: collectWords(child), url: await lab.namespace.openDoor(OTHER_PORT) }
}

run('the flash ends, is verified, and the other server knows it', async () => {
  await using postgres = await startPostgres()
  const env = {
    FLASHER_DATABASE_URL: postgres.urlOf(await postgres.create()),
    FLASHER_DATABASE_KEY: 'the key that the servers of this lab share',
    FLASHER_PXE_SERVERS: `${LAB_SERVER},http://${LAB_ADDRESS}:${OTHER_PORT}`,
  }
  const image = await (await openDebianImage()).file('img.zst')
  await using lab = await startBootLab({ images: [image], env })
  const other = await startOther(lab, env)
  await waitUntil(async () => other.said().includes('standing by'), other.said)
  await using pxe = await openMachine(lab, basename(image))
  await pxe.bind()

  await using machine = await pxe.start('bios-rom')
  await waitFor(pxe, async () => (await pxe.readRuns().catch(() => [])).length > 0)
  const [begun] = await pxe.readRuns()
  assert.is(begun?.result, null)
  await lab.stopServer()

  await waitForEnd(machine)
  const { cookie } = await login(other.url, LAB_PASSWORD)
  const heir = await openMachine({ ...lab, ask: createAsk(other.url, cookie) }, basename(image), {
    disk: pxe.disk,
  })
  const runs = await heir.readRuns()
  assert.equal(
    runs.map(({ id, result, verified }) => ({ id, result, verified })),
    [{ id: begun?.id, result: 'done', verified: true }],
  )
  assert.match(await bootToLogin(pxe.disk), /flasher-test login: $/)
})

test.run()
