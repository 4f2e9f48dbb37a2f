import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { runProgram } from '#kit/terminal/command/program.ts'
import { COMMAND_LINE } from '#server/current/commands/rules/commands.ts'

const test = suite('program')

async function work(): Promise<number> {
  await using _ = {
    async [Symbol.asyncDispose]() {
      throw new Error('it was gone already')
    },
  }
  throw new Fault('input-invalid', 'another server leads', { hint: 'It stands by.' })
}

test('what ended the work is said, not what went wrong while it was tidied up', async () => {
  let said = ''
  const output = { write: (text: string) => (said += text).length > 0, isTTY: false, columns: 80 }
  const program = { line: COMMAND_LINE, commands: { serve: () => Promise.resolve(work) } }
  const environment = { argv: ['serve'], env: {}, stdout: output, stderr: output }
  const code = await runProgram(program, environment)
  assert.match(said, 'flasher-web: another server leads')
  assert.match(said, 'It stands by.')
  assert.not.match(said, 'suppressed')
  assert.is(code, 2)
})

test.run()
