#pragma once

namespace longhaul {

// Gives access to a private member of a class of libtorch's that has no function for it: an explicit instantiation may
// name it. Used in this way, in a .cc, in namespace longhaul itself:
//
//   struct GammaMember {
//     using Member = const double torch::optim::StepLR::*;
//     friend Member member_of(GammaMember);
//   };
//   template struct PrivateMember<GammaMember, &torch::optim::StepLR::gamma_>;
//
//   scheduler.*member_of(GammaMember())
template <typename Tag, typename Tag::Member member>
struct PrivateMember {
  friend typename Tag::Member member_of(Tag) { return member; }
};

}  // namespace longhaul
