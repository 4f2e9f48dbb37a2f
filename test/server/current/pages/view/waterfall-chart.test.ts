import { readFile, writeFile } from 'node:fs/promises'
import process from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { divideRun } from '#fleet/run/rules/waterfall.ts'
import { renderMedian } from '#server/current/pages/dashboard/median-card.ts'
import { renderWaterfall } from '#server/current/pages/runs/run.ts'
import { createRun, type Run } from '#engine/inventory/rules/run.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { originOf } from '#test/support/server/runs.ts'

const test = suite('the chart of a run')

const list = (runs: readonly Run[]) => ({ list: () => runs.map((each, n) => ({ n, run: each })) })
const PICTURE = new URL('../../../../../docs/waterfall.svg', import.meta.url)
const at = (seconds: number) =>
  new Date(Date.parse('2026-11-26T08:00:00.000Z') + seconds * 1000).toISOString()
const stamps = {
  power_on_at: at(0),
  script_at: at(38),
  kernel_at: at(39.2),
  initrd_at: at(40.6),
  reset_at: null,
  start_at: at(42.1),
  system_at: at(51.3),
  plan_at: at(58),
}
const run: Run = {
  ...createRun('run-00000001', { ...originOf(MAC), stamps }, at(58.5)),
  result: 'done',
  ended_at: at(118),
  steps: [
    { phase: 'started', at: at(58.5) },
    { phase: 'write', at: at(60) },
    { phase: 'verify', at: at(103) },
    { phase: 'done', at: at(118) },
  ],
  proof: {
    state: 'booted',
    how: 'call',
    since: at(118),
    until: at(1918),
    seconds: 79,
    contacts: 1,
    first_contact_at: at(160),
    last_contact_at: at(160),
    silent_at: null,
    network_at: null,
    keys_before: null,
    is_elsewhere: false,
    call_made_at: at(58),
    reason: null,
  },
}

test('each part is a bar with its seconds, and the picture of the documentation is such a chart', async () => {
  const whole = divideRun(run)
  assert.ok(whole)
  const [svg = ''] = /<svg[^]*<\/svg>/.exec(String(renderWaterfall(whole))) ?? []
  assert.is(svg.match(/<rect/g)?.length, 12)
  assert.match(svg, 'Firmware: 38.0 s')
  const picture = `${svg.replaceAll('currentColor', '#444').replaceAll(/\s*\n\s*/g, '\n')}\n`
  if (process.env['UPDATE'] === '1') await writeFile(PICTURE, picture)
  assert.is(await readFile(PICTURE, 'utf8'), picture)
})

test('the dashboard has medians once a flash has ended', () => {
  assert.is(renderMedian(list([])), null)
  assert.match(String(renderMedian(list([run]))), 'Firmware')
  assert.is(renderMedian(list([{ ...run, mode: 'capture' }])), null)
})

test.run()
