import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideExit,
  findRef,
  parseStreamEvent,
  renderFlashBody,
  renderRunLine,
} from '#server/current/commands/rules/flash-outcome.ts'
import { renderData, renderEvent } from '#kit/net/rules/event-stream.ts'

const test = suite('flasher-web flash')

test('the exit code tells what was asked for from everything else', () => {
  const rows = {
    0: ['armed', 'flashed'],
    3: ['failed', 'not-booted', 'deleted', 'disarmed', 'replaced', 'constructor', 'unheard-of'],
    5: ['timeout'],
  }
  for (const [code, outcomes] of Object.entries(rows)) {
    for (const each of outcomes) assert.is(decideExit(each, 'flashed'), Number(code), each)
  }
  const booted = ['booted', 'seen', 'not-seen', 'failed-to-boot', 'flashed', 'failed', 'timeout']
  assert.equal(
    booted.map((each) => decideExit(each, 'booted')),
    [0, 4, 4, 4, 4, 3, 5],
  )
})

test('an image is named by its ref or its exact name', () => {
  const images = [
    { ref: 'a1', name: 'debian.img' },
    { ref: 'b2', name: 'twice.img' },
    { ref: 'c3', name: 'twice.img' },
  ]
  assert.equal(
    ['a1', 'debian.img', 'twice.img', 'none', ''].map((named) => findRef(images, named)),
    ['a1', 'a1', null, null, null],
  )
  assert.is(findRef({ not: 'a list' }, 'a1'), null)
})

test('the body has what was said, and nothing else', () => {
  const none = { ref: null, disk: null, power: false, until: 'flashed', wait: 0 } as const
  assert.equal(renderFlashBody(none), {})
  assert.equal(
    renderFlashBody({ ref: 'a', disk: 'S', power: 'restart', until: 'booted', wait: 9 }),
    {
      bty_image_ref: 'a',
      target_disk_serial: 'S',
      power: 'restart',
      until: 'booted',
      wait: 9,
    },
  )
})

test('what the server renders is read back', () => {
  const data = { outcome: 'booted', text: 'two\nlines' }
  const sent = renderEvent('end', renderData(JSON.stringify(data)))
  assert.equal(parseStreamEvent(sent.trimEnd()), { name: 'end', data })
  assert.is(parseStreamEvent(':'), null)
})

test('a line says how far a run is, and what comes from a machine is shown safely', () => {
  const lines = [
    { state: 'running', phase: 'write', step_bytes: 50, step_total: 200, proof: null },
    { state: 'stalled', phase: 'verify', step_bytes: 50, step_total: null, proof: null },
    { state: 'failed', phase: 'failed', reason: 'bad \u001b[31m disk', proof: null },
    { state: 'done', phase: 'done', proof: { state: 'watching' } },
    { state: 'done', phase: 'done', proof: { state: 'failed', reason: 'It asked\u001b 3 times.' } },
    'no run',
  ].map(renderRunLine)
  assert.equal(lines.slice(0, 2), ['run: write 25 %', 'run: verify (stalled)'])
  assert.not.match(lines[2] ?? '', '\u001b')
  assert.equal([lines[3], lines[5]], ['first boot: watching', null])
  assert.match(lines[4] ?? '', /^first boot: failed, It asked.* 3 times\.$/)
  assert.not.match(lines[4] ?? '', '\u001b')
})

test.run()
