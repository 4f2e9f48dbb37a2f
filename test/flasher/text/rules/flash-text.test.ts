import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent, WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { nextProgress, renderWhole } from '#flasher/text/rules/flash-text.ts'

const test = suite('progress in words')

const at = (phase: WriteProgress['phase'], bytes_written: number, total_bytes: number | null) => ({
  phase,
  bytes_read: 0,
  bytes_written,
  total_bytes,
  rate: 0,
  eta_seconds: null,
})

const renderPhase = (now: WriteProgress, before: WriteProgress | null) =>
  nextProgress({ event: 'writing', ...now }, { phase: 'not this', progress: before }).phase

test('what is under way: what an event begins, or what went on before it', () => {
  const write = { event: 'writing', ...at('write', 5, 671) } as const
  const rows: readonly (readonly [FlashEvent, string])[] = [
    [{ event: 'started', total_bytes: null }, 'preparing the disk ...'],
    [{ ...write, bytes_written: 9 }, 'before'],
    [{ event: 'synced' }, 'loading the new partition table ...'],
    [{ event: 'done' }, 'before'],
  ]
  for (const [event, phase] of rows) {
    const next = nextProgress(event, { phase: 'before', progress: write })
    assert.is(next.phase, phase)
    assert.is(next.progress, event.event === 'writing' ? event : write)
  }
})
test('where less is read back than was written, it says of what', () => {
  assert.is(renderPhase(at('write', 0, 671), null), 'writing')
  const all = 'reading back what was written'
  assert.is(renderPhase(at('verify', 0, 671), at('write', 671, 671)), all)
  assert.is(
    renderPhase(at('verify', 0, 409), at('write', 671, null)),
    `${all}, samples of its zeros`,
  )
  assert.is(renderPhase(at('verify', 0, 409), null), all)
})

test('why all is written where only what differs should be', () => {
  const first = at('write', 0, 671)
  assert.is(renderPhase({ ...first, delta: 'compared' }, null), 'writing what differs')
  assert.match(
    renderPhase({ ...first, delta: 'mostly-different' }, null),
    /whole image, as the disk differs too much/,
  )
  assert.is(renderWhole({}), null)
  assert.is(renderWhole({ delta: 'compared' }), null)
  assert.match(
    renderWhole({ delta: 'no-index' }) ?? '',
    /whole image was written, because it has no index/,
  )
  assert.match(renderWhole({ delta: 'untrusted' }) ?? '', /digest of its index/)
})

test.run()
