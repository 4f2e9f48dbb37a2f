import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readBlocks } from '#test/support/docs.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'

const test = suite('docs/remote.md')

test('the client that it shows is one', async () => {
  const [script = ''] = readBlocks('remote.md', 'sh')
  await using home = await createServerHome()
  await using server = await home.start()
  const here = script.replace('http://flasher.lan:8080', server.url)
  assert.is.not(here, script)
  // Alone: the server answers from another process.
  const child = spawn('sh', ['-ec', here], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [code] = await once(child, 'close')
  assert.is(code, 0)
  assert.match(said, /^\{.*"inventory".*\}\{.*\}$/s)
})

test.run()
