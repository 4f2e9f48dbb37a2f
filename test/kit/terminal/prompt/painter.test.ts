import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPainter } from '#kit/terminal/prompt/painter.ts'

const test = suite('painter')

function openCanvas(columns = 80, rows = 24) {
  const canvas = {
    columns,
    rows,
    said: '',
    write(text: string) {
      canvas.said += text
    },
    take() {
      const { said } = canvas
      canvas.said = ''
      return said
    },
  }
  return canvas
}
const LIST = Array.from({ length: 18 }, (_, row) => `row ${row} `.padEnd(70, '.'))
const mark = (at: number) => LIST.map((line, row) => (row === at ? `>${line}` : ` ${line}`))

test('the first frame scrolls away what stood there, later ones send what changed alone', () => {
  const canvas = openCanvas()
  const painter = createPainter(canvas)
  painter.paint({ lines: LIST, cursor: { row: 17, column: 5 } })
  assert.ok(canvas.take().startsWith(`${'\n'.repeat(23)}\u001b[0m\u001b[H\u001b[J\u001b[1;1Hrow 0`))
  painter.paint({ lines: LIST, cursor: { row: 17, column: 5 } })
  assert.is(canvas.take(), '\u001b[18;6H\u001b[?25h')
  painter.paint({ lines: LIST.with(3, 'another'), cursor: null })
  assert.is(canvas.take(), '\u001b[4;1Hanother\u001b[K\u001b[?25l')
  painter.paint({ lines: LIST.slice(0, 16), cursor: null })
  assert.is(canvas.take().split('\u001b[K').length - 1, 3)
})
test('a key costs a serial line little: two rows at most when the mark moves', () => {
  const canvas = openCanvas()
  const painter = createPainter(canvas)
  painter.paint({ lines: mark(3), cursor: { row: 19, column: 5 } })
  canvas.take()
  painter.paint({ lines: mark(4), cursor: { row: 19, column: 5 } })
  // This many bytes take 15 ms at 115200 baud.
  assert.ok(canvas.take().length < 180)
})
test('what is forgotten is drawn again, without another scroll', () => {
  const canvas = openCanvas()
  const painter = createPainter(canvas)
  painter.paint({ lines: ['one'], cursor: null })
  canvas.take()
  painter.forget()
  painter.paint({ lines: ['one'], cursor: null })
  assert.is(canvas.take(), '\u001b[0m\u001b[H\u001b[J\u001b[1;1Hone\u001b[K\u001b[?25l')
})
test('a serial line does not tell its size, and an absurd one is not believed', () => {
  const sizes = [
    [0, 0],
    [5, 3],
    [200, 50],
  ].map(([columns, rows]) => createPainter(openCanvas(columns, rows)).size())
  assert.equal(sizes, [
    { columns: 80, rows: 24 },
    { columns: 20, rows: 10 },
    { columns: 200, rows: 50 },
  ])
})
test('leaving shows the cursor below the last frame', () => {
  const canvas = openCanvas()
  const painter = createPainter(canvas)
  painter.leave()
  assert.is(canvas.take(), '')
  painter.paint({ lines: ['one', 'two'], cursor: null })
  canvas.take()
  painter.leave()
  assert.is(canvas.take(), '\u001b[2;1H\n\u001b[?25h')
  painter.leave()
  assert.is(canvas.take(), '')
})
test('leaving moves below a frame even after it was forgotten', () => {
  const canvas = openCanvas()
  const painter = createPainter(canvas)
  painter.paint({ lines: ['one', 'two', 'three'], cursor: null })
  painter.forget()
  canvas.take()
  painter.leave()
  assert.is(canvas.take(), '\u001b[3;1H\n\u001b[?25h')
})
test.run()
