/** What several servers promise about orders (docs/several-servers.md): a flash that begins under one server and ends under another one. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { setFileName, TRIO } from '#fleet/boot/rules/boot-set.ts'
import { parsePlan } from '#flasher/order/rules/plan.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { SHORT_LEASE, timesOf } from '#test/support/cluster/times.ts'
import {
  addBootFile,
  askAs,
  startServer,
  until,
  type ClusterServer,
} from '#test/support/cluster/servers.ts'
import { makeBytes } from '#test/support/collect.ts'
import { opened } from '#test/support/opened.ts'
import { makeFolder, serveCache } from '#test/support/server/image-cache.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('contract, orders')
const NAMES = ['one.img', 'two.img']
const contents = NAMES.map((_, at) => makeBytes(64 * 1024, at + 1))
const postgres = lendDatabases(test)
const cache = opened(test, async (stack) => {
  const folder = stack.use(await makeFolder())
  for (const [at, name] of NAMES.entries()) {
    await writeFile(join(folder.path, name), contents[at] ?? '')
  }
  return serveCache(folder.path)
})

const SERIAL = 'THE-TARGET'
const MAC = macOf(1)
const JSON_TYPE = { 'content-type': 'application/json' }
const digestOf = (at: number) =>
  createHash('sha256')
    .update(contents[at] ?? '')
    .digest('hex')

async function openServer(database: string) {
  const server = await startServer(database, {
    ...timesOf(SHORT_LEASE),
    FLASHER_WITHCACHE_URL: cache().base,
  })
  for (const part of TRIO) {
    await addBootFile(server, setFileName({ arch: 'x86_64', version: '1.0.0', part }), part)
  }
  return server
}

const post = (server: Pick<ClusterServer, 'url'>, path: string, body?: object) =>
  fetch(`${server.url}/pxe/${MAC}${path}`, {
    method: 'POST',
    headers: JSON_TYPE,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

const askPlan = (server: Pick<ClusterServer, 'url'>) =>
  fetch(`${server.url}/pxe/${MAC}/plan?features=disk-id,sources`)

async function readPlan(server: Pick<ClusterServer, 'url'>) {
  const answer = await askPlan(server)
  assert.is(answer.status, 200)
  const plan = parsePlan(await answer.json())
  if (!plan.ok) throw new Error(plan.refusal)
  return plan.value
}

const asksScript = async (server: Pick<ClusterServer, 'url'>) =>
  await (await fetch(`${server.url}/pxe/${MAC}?buildarch=x86_64&platform=efi`)).text()

const report = (run: string, phase: string, bytes: number) => ({
  run,
  phase,
  mode: 'flash',
  bytes_read: bytes,
  bytes_written: bytes,
  total_bytes: 64 * 1024,
  rate: null,
  eta_seconds: null,
})

const DISK = {
  path: '/dev/sda',
  size: '10G',
  vendor: null,
  model: 'a disk',
  serial: SERIAL,
  tran: 'sata',
  removable: false,
  readonly: false,
}

type Ask = Awaited<ReturnType<typeof askAs>>

/** Resolves to the images' refs once the server has their digests. */
async function awaitRefs(ask: Ask): Promise<readonly string[]> {
  return await until(async () => {
    const listed: readonly { name: string; ref: string; sha_short?: string | null }[] = await (
      await ask('/images')
    ).json()
    const refs = NAMES.flatMap((name, at) =>
      listed
        .filter((each) => each.name === name && digestOf(at).startsWith(each.sha_short ?? '-'))
        .map(({ ref }) => ref),
    )
    return refs.length === NAMES.length ? refs : null
  })
}

async function order(ask: Ask, ref: string | undefined) {
  const body = {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: ref,
    target_disk_serial: SERIAL,
  }
  const put = { method: 'PUT', body: JSON.stringify(body) }
  assert.is((await ask(`/machines/${MAC}`, put)).status, 200)
}

const ENDS: Readonly<Record<string, NodeJS.Signals>> = {
  'a kill': 'SIGKILL',
  'a process that hangs': 'SIGSTOP',
  'a clean stop': 'SIGTERM',
}

for (const [end, signal] of Object.entries(ENDS)) {
  test(`3: a flash begins before ${end} of the leader and ends under another one: one order, one run, one digest`, async () => {
    const name = await postgres.create()
    const url = postgres.urlOf(name)
    await using leader = await openServer(url)
    await leader.leads()
    await using other = await openServer(url)
    await other.standsBy()
    const ask = await askAs(other)
    const [first, second] = await awaitRefs(ask)
    await order(ask, first)
    assert.is((await post(other, '/inventory', { disks: [DISK] })).status, 204)
    for (const server of [leader, other]) {
      await until(async () => /^kernel /m.test(await asksScript(server)))
      const plan = await readPlan(server)
      assert.is(plan.mode, 'flash')
      if (plan.mode === 'flash') assert.equal([plan.sha256, plan.disk], [digestOf(0), SERIAL])
    }
    const run = crypto.randomUUID()
    assert.is((await post(leader, '/progress', report(run, 'started', 0))).status, 204)
    assert.is((await post(leader, '/progress', report(run, 'write', 1024))).status, 204)
    leader.kill(signal)
    // Whoever asked the one that hangs is answered later, or never: not by the order that has ended.
    const late = signal === 'SIGSTOP' ? askPlan(leader).catch(() => null) : null
    assert.is((await post(other, '/progress', report(run, 'write', 32 * 1024))).status, 204)
    await other.leads()
    assert.is((await post(other, '/progress', report(run, 'done', 64 * 1024))).status, 204)
    // Its answer may have been lost: it is sent again.
    for (let times = 0; times < 2; times += 1) {
      assert.is((await post(other, `/done?run=${run}`)).status, 204)
    }
    if (late !== null) {
      leader.kill('SIGCONT')
      const answer = await late
      const text = answer === null ? '' : await answer.text().catch(() => '')
      assert.not.match(text, digestOf(0))
    }
    assert.is((await readPlan(other)).mode, 'exit')
    assert.not.match(await asksScript(other), /^kernel /m)
    const askNext = await askAs(other)
    const { runs } = await (await askNext(`/machines/${MAC}/runs`)).json()
    assert.equal(
      runs.map((each: { id: string; state: string }) => [each.id, each.state]),
      [[run, 'done']],
    )

    // The next order names the other image, by way of either of them.
    await leader.process().ended
    leader.restart()
    await leader.standsBy()
    await order(await askAs(leader), second)
    for (const server of [leader, other]) {
      const plan = await readPlan(server)
      assert.is(plan.mode === 'flash' ? plan.sha256 : plan.mode, digestOf(1))
    }
  })
}

test.run()
