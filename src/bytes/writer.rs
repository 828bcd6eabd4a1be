//! Writing primitives into a slice whose size was computed before.

/// Fills a slice from its start. Panics if the slice is too short: the caller computed a wrong size.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    #[inline]
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { rest: out }
    }

    #[inline(always)]
    fn skip(&mut self, size: usize) {
        self.rest = &mut std::mem::take(&mut self.rest)[size..];
    }

    #[inline(always)]
    pub(crate) fn bytes(&mut self, data: &[u8]) {
        self.rest[..data.len()].copy_from_slice(data);
        self.skip(data.len());
    }

    #[inline(always)]
    pub(crate) fn i8(&mut self, value: i8) {
        self.bytes(&value.to_be_bytes());
    }

    #[inline(always)]
    pub(crate) fn i16(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    #[inline(always)]
    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    #[inline(always)]
    pub(crate) fn i64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }
}
