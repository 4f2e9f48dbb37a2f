/** A part of a disk as a block device: a failure to begin is an error like any other. */
import { spawn } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openLoopPart } from '#engine/disk/loop-part.ts'
import { createShell } from '#kit/host/shell.ts'
import { faultOf } from '#test/support/collect.ts'

const test = suite('parts of a disk')

test('a program that cannot be started is a Fault, and ends nothing else', async () => {
  const shell = {
    ...createShell({ env: process.env }),
    pipe: () => spawn('/nowhere/setsid', { stdio: ['pipe', 'pipe', 'pipe'] }),
  }
  const disk = { node: '/dev/null', fd: 0, sectorBytes: 512 }
  const fault = await faultOf(() => openLoopPart(shell, disk, { offset: 0, bytes: 512 }))
  assert.is(fault.code, 'tool-failed')
  assert.match(fault.message, /^no loop device: .*ENOENT/)
})

test('a tool that fails is quoted, however late its words come', async () => {
  const script = 'exec >&-; sleep 0.2; echo losetup: no free device >&2; exit 1'
  const shell = {
    ...createShell({ env: process.env }),
    pipe: () => spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'pipe'] }),
  }
  const disk = { node: '/dev/null', fd: 0, sectorBytes: 512 }
  const fault = await faultOf(() => openLoopPart(shell, disk, { offset: 0, bytes: 512 }))
  assert.match(fault.message, /^no loop device: losetup: no free device$/)
})

test.run()
