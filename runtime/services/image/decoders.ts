/** Opens an image's decoded content, whatever its format. */
import type { ImageFormat } from '../../core/image/image.ts'
import type { Blocks } from './blocks.ts'
import { openQcow2 } from './qcow2.ts'
import type { Shell } from '../host/shell.ts'
import type { Source } from './source.ts'
import { openGzip, openRaw } from './stream-blocks.ts'
import { findDecoder, openWithTool } from './tool-blocks.ts'
import { openZstd } from './zstd.ts'

export type Decoders = ReturnType<typeof createDecoders>

export function createDecoders({ shell }: { readonly shell: Shell }) {
  const open: Readonly<Record<ImageFormat, (source: Source) => Blocks | Promise<Blocks>>> = {
    img: (source) => openRaw(source),
    'img.zst': openZstd,
    'img.gz': openGzip,
    'img.xz': (source) => openWithTool(source, 'img.xz', shell),
    'img.bz2': (source) => openWithTool(source, 'img.bz2', shell),
    qcow2: openQcow2,
  }
  return {
    /** A Fault `tool-missing` when this format's decoder is a tool that is not installed. */
    async check(format: ImageFormat): Promise<void> {
      if (format === 'img.xz' || format === 'img.bz2') await findDecoder(shell, format)
    },
    open: async (source: Source, format: ImageFormat) => open[format](source),
  }
}
