import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  complained,
  decideAnswer,
  findInstant,
  listShown,
  moved,
  pressed,
  renewed,
  typed,
  UNTOUCHED,
  type Menu,
  type MenuState,
} from '#kit/terminal/prompt/menu.ts'

const test = suite('menu')

const MENU: Menu = {
  prompt: 'Disk',
  columns: [{ title: 'Path' }],
  rows: [
    { cells: ['/dev/sda', 'Samsung'], refusal: 'this system runs from it' },
    { cells: ['/dev/sdb', 'Kingston'], refusal: null },
    { cells: ['/dev/sdc', 'Samsung'], refusal: null },
    { cells: ['/dev/sdd', 'Toshiba'], refusal: 'read-only' },
    { cells: ['/dev/nvme0n1', 'Samsung'], refusal: null },
  ],
  keys: [
    { key: 'b', words: ['back'], does: 'back' },
    { key: 'r', words: ['refresh'], does: null },
    { key: 'y', words: ['yes'], does: 'flash', isInstant: true },
  ],
  enter: 'r',
}
const PLACE: Menu = { ...MENU, rows: [], enter: 'none', takesText: true }
const type = (menu: Menu, line: string, from = UNTOUCHED) => typed(menu, from, line, line.length)
const answer = (menu: Menu, line: string) => decideAnswer(menu, type(menu, line))

test('a line means a number, a letter, a word, or nothing that there is', () => {
  const rows: readonly (readonly [string, unknown])[] = [
    ['2', { kind: 'row', index: 1 }],
    [' 5 ', { kind: 'row', index: 4 }],
    ['b', { kind: 'key', key: 'b' }],
    ['BACK', { kind: 'key', key: 'b' }],
    ['refresh', { kind: 'key', key: 'r' }],
    ['', { kind: 'key', key: 'r' }],
    ['1', 'Number 1 cannot be chosen: this system runs from it.'],
    ['0', '"0" is out of range; valid disk numbers are 1..5.'],
    ['6', '"6" is out of range; valid disk numbers are 1..5.'],
    ['999999', '"999999" is out of range; valid disk numbers are 1..5.'],
    ['ba', 'Unrecognised choice "ba"; type a number from 1 to 5, b or y.'],
    ['1e1', 'Unrecognised choice "1e1"; type a number from 1 to 5, b or y.'],
    ['/floppy', 'Nothing that can be chosen matches "floppy".'],
    ['/toshiba', 'Nothing that can be chosen matches "toshiba".'],
    ['/SAM nvme', { kind: 'row', index: 4 }],
  ]
  for (const [line, meant] of rows) {
    const found = answer(MENU, line)
    assert.equal(found.ok ? found.value : found.refusal, meant, line)
  }
  assert.equal(answer({ ...MENU, rows: [] }, '1'), {
    ok: false,
    refusal: 'There is no disk to choose yet.',
  })
  assert.equal(answer({ ...MENU, enter: null }, ''), {
    ok: false,
    refusal: 'Type a number from 1 to 5, b or y.',
  })
})
test('a typed text is taken as it is; letters and words still count, slashes do not', () => {
  assert.equal(answer(PLACE, '  /Media/Usb Stick/C.toml '), {
    ok: true,
    value: { kind: 'text', text: '/Media/Usb Stick/C.toml' },
  })
  assert.equal(answer(PLACE, 'back'), { ok: true, value: { kind: 'key', key: 'b' } })
  assert.equal(answer(PLACE, ''), { ok: true, value: { kind: 'key', key: 'none' } })
})
test('a number and a filter mark their row, and arrows go where something can be chosen', () => {
  assert.is(type(MENU, '3').marked, 2)
  assert.is(type(MENU, '9').marked, null)
  assert.is(type(MENU, '/samsung').marked, 2)
  assert.is(type(MENU, '/toshiba').marked, null)
  assert.equal(listShown(MENU, '/samsung'), [0, 2, 4])
  const path = (moves: readonly ('up' | 'down' | 'pageup' | 'pagedown')[], start = UNTOUCHED) =>
    moves.reduce<MenuState>((state, move) => moved(MENU, state, move, 2), start).marked
  assert.is(path(['down']), 1)
  assert.is(path(['down', 'down', 'down']), 4)
  assert.is(path(['down', 'down', 'down', 'down']), 1)
  assert.is(path(['up']), 4)
  assert.is(path(['down', 'pagedown']), 4)
  assert.is(path(['down', 'pagedown', 'pagedown']), 4)
  assert.is(path(['up', 'pageup']), 1)
  const filtered = moved(MENU, type(MENU, '/samsung'), 'down', 2)
  assert.equal([filtered.line, filtered.marked], ['/samsung', 4])
  assert.equal(moved(MENU, type(MENU, '3'), 'down', 2).line, '')
  const chosen = decideAnswer(MENU, moved(MENU, UNTOUCHED, 'down', 2))
  assert.equal(chosen, { ok: true, value: { kind: 'row', index: 1 } })
})
const rows = (...indexes: readonly number[]) => ({ kind: 'rows', indexes })
test('several rows: ticked with the space bar, or typed with blanks or commas between', () => {
  const many: Menu = { ...MENU, takesSeveral: true }
  const press = (keys: readonly string[], start = UNTOUCHED) =>
    keys.reduce<MenuState>((state, key) => pressed(many, state, key, 2) ?? state, start)
  const found = (state: MenuState) => {
    const decided = decideAnswer(many, state)
    return decided.ok ? decided.value : decided.refusal
  }
  // One row as ever: by number, by arrow, by filter; Enter alone is still a key.
  assert.equal(found(type(many, '2')), rows(1))
  assert.equal(found(press(['down', 'down'])), rows(2))
  assert.equal(found(type(many, '/nvme')), rows(4))
  assert.equal(found(UNTOUCHED), { kind: 'key', key: 'r' })
  assert.equal(found(press(['space', 'down', 'down', 'space'])), rows(1, 4))
  assert.equal(found(press(['down', 'space', 'space'])), rows(1))
  // A row that is marked besides counts for nothing, one that was typed besides does.
  assert.equal(found(press(['down', 'space', 'down'])), rows(1))
  const two = press(['space'], type(many, '3'))
  assert.equal([two.line, two.ticked], ['', [2]])
  assert.equal(found(type(many, '5', two)), rows(2, 4))
  for (const line of ['2 5', '5,2', ' 2 , 5 ', '5 2 2']) {
    assert.equal(found(type(many, line)), rows(1, 4), line)
  }
  assert.is(found(type(many, '2 4')), 'Number 4 cannot be chosen: read-only.')
  assert.is(found(type(many, '2 9')), '"9" is out of range; valid disk numbers are 1..5.')
  assert.match(String(found(type(many, '2 b'))), /^Unrecognised choice "2 b"/)
  assert.equal(found(type(many, 'b', two)), { kind: 'key', key: 'b' })
  // What cannot be chosen cannot be ticked.
  const refused = press(['space'], type(many, '4', two))
  assert.equal(refused.ticked, [2])
  assert.is(refused.complaint, 'Number 4 cannot be chosen: read-only.')
  // Escape takes the line away first, then the ticks.
  assert.equal(press(['escape'], type(many, '/sam', two)).ticked, [2])
  assert.equal(press(['escape', 'escape'], type(many, '/sam', two)), UNTOUCHED)
  // A filter adds what it marks to the ticks, or is refused.
  assert.equal(found(type(many, '/nvme', two)), rows(2, 4))
  assert.match(String(found(type(many, '/floppy', two))), /floppy/)
  // In a list of numbers, and in what marks no row, the space bar types a blank and ticks nothing.
  for (const line of ['2,', '2 5', '12', 'x', '2;']) {
    assert.is(pressed(many, type(many, line), 'space', 2), null, line)
  }
  // In a filter, and where one row is asked for, it is a character.
  assert.is(pressed(many, type(many, '/sam'), 'space', 2), null)
  assert.is(pressed(MENU, UNTOUCHED, 'space', 2), null)
})
test('a ticked row that cannot be chosen any more is refused', () => {
  const many: Menu = { ...MENU, takesSeveral: true }
  const state = { ...UNTOUCHED, ticked: [1, 2] }
  const small = MENU.rows.map((row) => ({ ...row, refusal: 'too small' }))
  const decided = decideAnswer({ ...many, rows: small }, state)
  assert.is(decided.ok ? '' : decided.refusal, 'Number 2 cannot be chosen: too small.')
})
test('news leaves what was wrong with an answer standing, unless that is right now', () => {
  const refusal = 'Number 4 cannot be chosen: read-only.'
  const state = complained(type(MENU, '4'), refusal)
  assert.equal([state.line, state.marked, state.complaint], ['', null, refusal])
  assert.is(renewed(MENU, state).complaint, refusal)
  const free = { ...MENU, rows: MENU.rows.map((row) => ({ ...row, refusal: null })) }
  assert.is(renewed(free, state).complaint, null)
  const fewer = { ...MENU, rows: MENU.rows.slice(0, 2) }
  assert.match(renewed(fewer, state).complaint ?? '', /"4" is out of range.*1\.\.2/)
  assert.is(renewed(MENU, type(MENU, '4', state)).complaint, null)
})
test('only some keys act at once', () => {
  assert.equal(findInstant(MENU, 'Y'), { kind: 'key', key: 'y' })
  for (const line of ['', 'b', 'ye', 'yes']) assert.is(findInstant(MENU, line), null)
})
test('whatever is typed and pressed, what cannot be chosen is not', () => {
  const presses = fc.array(fc.constantFrom('up', 'down', 'pageup', 'pagedown'), { maxLength: 6 })
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), presses, (line, moves) => {
      const state = moves.reduce((now, move) => moved(MENU, now, move, 2), type(MENU, line))
      const found = decideAnswer(MENU, state)
      if (found.ok && found.value.kind === 'row') {
        assert.is(MENU.rows[found.value.index]?.refusal, null)
      }
    }),
  )
})
test.run()
