/** Opens an image's decoded content, whatever its format. */
import type { ImageFormat } from './rules/image.ts'
import type { Blocks } from './blocks.ts'
import type { Shell } from '../../kit/host/shell.ts'
import type { Source } from './sources/source.ts'
import { openGzip, openRaw } from './stream-blocks.ts'

export type Decoders = ReturnType<typeof createDecoders>

export function createDecoders({ shell }: { readonly shell: Shell }) {
  // Each is loaded only for an image of its format.
  const open: Readonly<Record<ImageFormat, (source: Source) => Blocks | Promise<Blocks>>> = {
    img: (source) => openRaw(source),
    'img.zst': async (source) => (await import('./zstd-decoder.ts')).openZstd(source),
    'img.gz': openGzip,
    'img.xz': async (source) => (await loadTools()).openWithTool(source, 'img.xz', shell),
    'img.bz2': async (source) => (await loadTools()).openWithTool(source, 'img.bz2', shell),
    qcow2: async (source) => (await import('./qcow2-blocks.ts')).openQcow2(source),
  }
  return {
    /** A Fault `tool-missing` when this format's decoder is a tool that is not installed. */
    async check(format: ImageFormat): Promise<void> {
      if (format === 'img.xz' || format === 'img.bz2') {
        await (await loadTools()).findDecoder(shell, format)
      }
    },
    open: async (source: Source, format: ImageFormat) => open[format](source),
  }
}

const loadTools = () => import('./tool-blocks.ts')
