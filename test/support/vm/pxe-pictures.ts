/** `pnpm docs:boots`: a network boot as it looks on the machine's own screen, into docs/pictures. */
import { openTrio } from './built-images.ts'
import { startNetboot } from './netboot.ts'
import { discover, PATIENCE, startPxeLab, waitFor } from './pxe-flash.ts'
import { shoot } from './screendump.ts'

{
  await using pxe = await startPxeLab()
  await discover(pxe, 'uefi-pxe')
  await pxe.bind()
  await using machine = await pxe.start('uefi-pxe', { hasScreen: true })
  await machine.waitFor(/starts the live system/, PATIENCE)
  await shoot(machine, 'pxe-ipxe')
  await machine.waitFor(/flasher: digest verified/, PATIENCE)
  await shoot(machine, 'pxe-root')
  await waitFor(pxe, async () => {
    const [run] = await pxe.readRuns()
    return run !== undefined && run.bytes_written > (run.total_bytes ?? 0) / 3
  })
  await shoot(machine, 'pxe-flash')
}
{
  const append = ['console=tty0', `flasher.sha256=${'0'.repeat(64)}`]
  await using boot = await startNetboot(await openTrio(), { append, args: ['-vga', 'std'] })
  await boot.machine.waitFor(/starts again in 300 seconds/, PATIENCE)
  await shoot(boot.machine, 'pxe-failed')
}
