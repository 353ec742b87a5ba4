//! Earlier releases that a certificate must not forget.
