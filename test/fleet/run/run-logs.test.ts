import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_LOG_BYTES, type ProgressPost } from '#engine/inventory/rules/run.ts'
import { createRunLogs, type Runs } from '#fleet/run/runs.ts'
import { originOf, postOf, runIdOf } from '#test/support/server/runs.ts'
import { createStateFolder, macOf } from '#test/support/server/state.ts'

const test = suite('logs of runs')
const MAC = macOf(1)

async function take(runs: Runs, fields: Partial<ProgressPost>, mac = MAC) {
  assert.ok((await runs.take(postOf(fields), originOf(mac))).ok)
}

test('the tail of a log is kept, packed, and goes with its run', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const { runs } = state
  assert.is(await runs.saveLog(MAC, runIdOf(1), Buffer.from('x')), false)
  await take(runs, { phase: 'failed' })
  const text = `${'a'.repeat(MAX_LOG_BYTES)}the end`
  assert.is(await runs.saveLog(MAC, runIdOf(1), Buffer.from(text)), true)
  const kept = await runs.findLog(MAC, runIdOf(1))
  assert.is(kept?.length, MAX_LOG_BYTES)
  assert.ok(kept?.endsWith('the end'))
  assert.is(runs.find(MAC, runIdOf(1))?.has_log, true)
  const size = Number(state.database.sql.get('SELECT size FROM run_logs')?.['size'])
  assert.ok(size < 2000, `${size} bytes`)

  await state.database.write((sql) => sql.run('DELETE FROM runs'))
  await runs.prune()
  assert.is(await runs.findLog(MAC, runIdOf(1)), null)
})

test('all logs together stay within their bytes, the newest of them', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const logs = createRunLogs(state.database, 500)
  for (let n = 1; n <= 5; n += 1) {
    await take(state.runs, { phase: 'done', run: runIdOf(n) }, macOf(n))
    const noise = Buffer.from(Array.from({ length: 100 }, (_, at) => (at * n * 97) % 251))
    await logs.save(macOf(n), runIdOf(n), noise, `2026-01-0${n}T00:00:00.000Z`)
  }
  await logs.prune()
  const left = await Promise.all(
    [1, 2, 3, 4, 5].map(async (n) => (await logs.find(macOf(n), runIdOf(n))) !== null),
  )
  assert.is(left[4], true)
  assert.is(left[0], false)
})

test.run()
