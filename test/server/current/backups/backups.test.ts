import { rm, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { backupRoutes } from '#server/current/backups/backup-routes.ts'
import { openBackupFixture, populate } from '#test/support/server/backups.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'
import { createStateFolder, macOf } from '#test/support/server/state.ts'

const test = suite('backup routes')
const ID = '2026-11-21T06-55-53Z'

const now = () => new Date('2026-11-21T06:55:53.000Z')

async function createFixture() {
  const folder = await createStateFolder()
  const fixture = await openBackupFixture(folder, { now })
  const server = await createTestServer({
    routes: (site) => backupRoutes(site, { backups: fixture.backups, place: () => 'fs' }),
  })
  await populate(fixture)
  return {
    ...fixture,
    server,
    ask: await server.operator(),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await fixture[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('a backup is asked for, listed, downloaded, restored and removed', async () => {
  await using fixture = await createFixture()
  const started = await fixture.ask('/workers/backups', asJson({ trigger: 'manual' }))
  assert.is(started.status, 202)
  const job = await started.json()
  assert.equal([job.backup_id, job.trigger, job.dest_path], [ID, 'manual', ID])
  await fixture.backups.awaitEnd(ID)
  const listing = await (await fixture.ask('/workers/backups')).json()
  assert.is(listing.backups[0].status, 'completed')
  assert.equal(
    listing.stored.map((one: { backup_id: string; kind: string; machines: number }) => [
      one.backup_id,
      one.kind,
      one.machines,
    ]),
    [[ID, 'full', 3]],
  )
  assert.not(JSON.stringify(listing).includes('/tmp'))
  const download = await fixture.ask(`/ui/backups/${ID}/download`, {
    headers: { 'accept-encoding': 'gzip' },
  })
  assert.is(download.headers.get('content-encoding'), null)
  assert.ok(Number(download.headers.get('content-length')) > 0)
  assert.is(download.headers.get('content-disposition'), `attachment; filename="${ID}.json"`)
  assert.is((await download.json()).bty_export_version, 3)
  const whole = await fixture.ask(`/ui/backups/${ID}/download?file=state.db`)
  assert.is(
    Buffer.from(await whole.arrayBuffer())
      .subarray(0, 15)
      .toString(),
    'SQLite format 3',
  )
  await fixture.machines.remove(macOf(1))
  const restored = await fixture.ask(`/workers/backups/${ID}/restore`, { method: 'POST' })
  assert.is(restored.status, 200)
  assert.is((await restored.json()).machines, 3)
  assert.is(await fixture.machines.count(), 3)
  const removed = await fixture.ask(`/ui/backups/${ID}`, { method: 'DELETE' })
  assert.is((await removed.json()).machines, 3)
  assert.is((await fixture.ask(`/ui/backups/${ID}`, { method: 'DELETE' })).status, 404)
})

test('no body and an empty one ask for a backup by hand; anything else is 422 with its field', async () => {
  await using fixture = await createFixture()
  for (const init of [{ method: 'POST' }, asJson({})]) {
    const answer = await fixture.ask('/workers/backups', init)
    assert.is(answer.status, 202)
    assert.is((await answer.json()).trigger, 'manual')
  }
  for (const [body, field] of [
    [{ trigger: 'now' }, 'trigger'],
    [{ extra: 1 }, 'extra'],
  ] as const) {
    const answer = await fixture.ask('/workers/backups', asJson(body))
    assert.is(answer.status, 422)
    assert.match(JSON.stringify((await answer.json()).detail), field)
  }
})

test('a finished one is answered as it is; unknown and hostile ids are 404', async () => {
  await using fixture = await createFixture()
  await fixture.backUp()
  const done = await fixture.ask(`/workers/backups/${ID}`, { method: 'DELETE' })
  assert.is((await done.json()).status, 'completed')
  const all = await fixture.ask('/workers/backups', { method: 'DELETE' })
  assert.equal(await all.json(), { cancelled: [] }, 'nothing is under way')
  for (const id of ['2020-01-01T00-00-00Z', 'x', '..%2f..%2fstate.db', '%3Cscript%3E']) {
    for (const [path, method] of [
      [`/workers/backups/${id}`, 'DELETE'],
      [`/workers/backups/${id}/restore`, 'POST'],
      [`/ui/backups/${id}/download`, 'GET'],
      [`/ui/backups/${id}`, 'DELETE'],
    ] as const) {
      const answer = await fixture.ask(path, { method })
      assert.is(answer.status, 404, `${method} ${path}`)
      assert.not((await answer.text()).includes('<script>'))
    }
  }
  const none = await fixture.ask(`/ui/backups/${ID}/download?file=../../state.db`)
  assert.is(none.status, 404)
})

test('nobody without a session', async () => {
  await using fixture = await createFixture()
  for (const [path, method] of [
    ['/workers/backups', 'GET'],
    ['/workers/backups', 'POST'],
    [`/workers/backups/${ID}`, 'DELETE'],
    [`/workers/backups/${ID}/restore`, 'POST'],
  ] as const) {
    assert.is((await fixture.server.request(path, { method })).status, 401, path)
  }
  assert.equal(fixture.backups.jobs(), [])
})

test('a file where the folder should be is said, and a backup fails with the reason', async () => {
  await using fixture = await createFixture()
  await fixture.backUp()
  await rm(fixture.backupDir, { recursive: true })
  await writeFile(fixture.backupDir, 'no folder')
  for (const [path, method] of [
    ['/workers/backups', 'GET'],
    [`/workers/backups/${ID}/restore`, 'POST'],
    [`/ui/backups/${ID}/download`, 'GET'],
    [`/ui/backups/${ID}`, 'DELETE'],
  ] as const) {
    const answer = await fixture.ask(path, { method })
    assert.is(answer.status, 409, path)
    const text = await answer.text()
    assert.match(text, 'the backup folder is a file', path)
    assert.not.match(text, fixture.backupDir, path)
  }
  const job = await (await fixture.ask('/workers/backups', asJson({}))).json()
  const ended = await fixture.backups.awaitEnd(job.backup_id)
  assert.is(ended?.status, 'failed')
  assert.match(ended?.error ?? '', 'the backup folder is a file')
  await rm(fixture.backupDir)
  const listing = await (await fixture.ask('/workers/backups')).json()
  assert.equal(listing.stored, [])
})

test.run()
